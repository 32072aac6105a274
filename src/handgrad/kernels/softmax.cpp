// Softmax: y_i = exp(x_i − max x) / Σ_j exp(x_j − max x) along one axis.
#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {
namespace {

template <class T>
void softmax_forward(In<T> x, Out<T> y, long outer, long width, long inner) {
    const Check check;
    check.values("x", x, outer, width, inner);
    check.values("y", y, outer, width, inner);
    if (x.size() == 0) return;
    const KernelScope scope(x.size());
    for_rows<T, 1>({outer, width, inner}, {x.data()}, y.data(), [=](long, auto in, T* out) {
        const T* scores = in[0];
        const T best = reduce_max(scores, width);
        // A row of nothing but −∞ gives 0.
        const T highest = best == -std::numeric_limits<T>::infinity() ? T(0) : best;
        const T all = reduce_sum<T>(0, width, [=](auto lanes) {
            const Vec<T> power = exp(Vec<T>(lanes.load(scores) - highest));
            lanes.store(out, power);
            return power;
        });
        const T scale = all == T(0) ? T(1) : T(1) / all;
        transform<T>(0, width, [=](auto lanes) { lanes.store(out, lanes.load(out) * scale); });
    });
}

template <class T>
void softmax_backward(In<T> dy, In<T> y, Out<T> dx, long outer, long width, long inner) {
    const Check check;
    check.values("dy", dy, outer, width, inner);
    check.values("y", y, outer, width, inner);
    check.values("dx", dx, outer, width, inner);
    if (y.size() == 0) return;
    const KernelScope scope(y.size());
    for_rows<T, 2>(
        {outer, width, inner}, {dy.data(), y.data()}, dx.data(), [=](long, auto in, T* out) {
            const T* given = in[0];
            const T* probability = in[1];
            const T expected = reduce_sum<T>(0, width, [=](auto lanes) {
                return Vec<T>(lanes.load(probability) * lanes.load(given));
            });
            transform<T>(0, width, [=](auto lanes) {
                lanes.store(out, lanes.load(probability) * (lanes.load(given) - expected));
            });
        });
}

const KernelRegistrar registrars[] = {
    {"softmax_forward", softmax_forward<float>, softmax_forward<double>},
    {"softmax_backward", softmax_backward<float>, softmax_backward<double>},
};

}  // namespace
}  // namespace handgrad
