// Dropout: y = x mask/(1 − p), the mask decided by one drawn number per value; `residual`, where
// given, is added.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// `__restrict`: these never overlap, and only so does the compiler make vectors of the loops.
template <class T>
void dropout_forward(In<T> x, In<float> drawn, std::optional<In<T>> residual, Out<bool> mask,
                     Out<T> y, double p, double scale) {
    const Check check;
    check.values("drawn", drawn, x.size());
    check.values("residual", residual, x.size());
    check.values("mask", mask, x.size());
    check.values("y", y, x.size());
    const KernelScope scope(x.size());
    parallel_for(x.size(), kChunk, [&](long begin, long end) {
        const T* __restrict source = x.data();
        const float* __restrict number = drawn.data();
        const T* __restrict added = data_or_null(residual);
        bool* __restrict stays = mask.data();
        T* __restrict target = y.data();
        const T factor = T(scale);
        const float least = static_cast<float>(p);
        for (long i = begin; i < end; i++) {
            const T scaled = factor * source[i];
            stays[i] = number[i] >= least;
            const T passed = number[i] >= least ? scaled : T(0);
            target[i] = added == nullptr ? passed : added[i] + passed;
        }
    });
}

template <class T>
void dropout_backward(In<T> dy, In<bool> mask, Out<T> dx, double scale) {
    const Check check;
    check.values("mask", mask, dy.size());
    check.values("dx", dx, dy.size());
    const KernelScope scope(dy.size());
    parallel_for(dy.size(), kChunk, [&](long begin, long end) {
        const T* __restrict source = dy.data();
        const auto* __restrict stays = reinterpret_cast<const unsigned char*>(mask.data());
        T* __restrict target = dx.data();
        const T factor = T(scale);
        for (long i = begin; i < end; i++) {
            const T scaled = factor * source[i];
            target[i] = stays[i] != 0 ? scaled : T(0);
        }
    });
}

const KernelRegistrar registrars[] = {
    {"dropout_forward", dropout_forward<float>, dropout_forward<double>},
    {"dropout_backward", dropout_backward<float>, dropout_backward<double>},
};

}  // namespace
}  // namespace handgrad
