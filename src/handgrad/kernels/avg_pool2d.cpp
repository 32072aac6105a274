// Average pooling: the mean of every window; its count comes from Python, one per window.
#include "core/binding/binding.h"
#include "core/conv/pooling.h"
#include "core/runtime/gil.h"
#include "core/runtime/threads.h"
#include "core/simd/simd.h"

namespace handgrad {
namespace {

template <class T>
T sum_of(const T* values, long count) {
    Vec<T> sum{};
    long i = 0;
    for (; i + kLanes<T> <= count; i += kLanes<T>) sum += load(values + i);
    return lane_sum(sum + masked_load(values + i, count - i));
}

template <class T>
void avg_pool2d_forward(In<T> x, In<T> count, Out<T> y, const PoolingSizes& sizes) {
    const Check check;
    const Pooling pool(check, sizes, "x", x, "y", y, 64);
    check.values("count", count, pool.windows());
    if (x.size() == 0 && y.size() == 0) return;
    const KernelScope scope;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long plane = begin; plane < end; plane++) {
            const T* image = x.data() + plane * pool.values();
            T* means = y.data() + plane * pool.windows();
            if (pool.whole()) {
                means[0] = sum_of(image, pool.values()) / count.data()[0];
                continue;
            }
            std::fill_n(means, pool.windows(), T(0));
            for (long j = 0; j < pool.out_h; j++) {
                T* sums = means + j * pool.out_w;
                pool.for_each_offset_row(j, [&](long row, long shift) {
                    const T* source = image + row * pool.width + shift;
                    const long last = pool.last_inside(shift);
                    for (long k = pool.first_inside(shift); k < last; k++)
                        sums[k] += source[k * pool.stride_w];
                });
            }
            for (long i = 0; i < pool.windows(); i++) means[i] /= count.data()[i];
        }
    });
}

template <class T>
void avg_pool2d_backward(In<T> dy, In<T> count, Out<T> dx, const PoolingSizes& sizes) {
    const Check check;
    const Pooling pool(check, sizes, "dx", dx, "dy", dy, 64);
    check.values("count", count, pool.windows());
    if (dx.size() == 0 && dy.size() == 0) return;
    const KernelScope scope;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long plane = begin; plane < end; plane++) {
            T* image = dx.data() + plane * pool.values();
            const T* gradient = dy.data() + plane * pool.windows();
            if (pool.whole()) {
                std::fill_n(image, pool.values(), gradient[0] / count.data()[0]);
                continue;
            }
            std::fill_n(image, pool.values(), T(0));
            for (long j = 0; j < pool.out_h; j++) {
                const T* gradient_row = gradient + j * pool.out_w;
                const T* counts = count.data() + j * pool.out_w;
                pool.for_each_offset_row(j, [&](long row, long shift) {
                    T* target = image + row * pool.width + shift;
                    const long last = pool.last_inside(shift);
                    for (long k = pool.first_inside(shift); k < last; k++)
                        target[k * pool.stride_w] += gradient_row[k] / counts[k];
                });
            }
        }
    });
}

const KernelRegistrar registrars[] = {
    {"avg_pool2d_forward", avg_pool2d_forward<float>, avg_pool2d_forward<double>},
    {"avg_pool2d_backward", avg_pool2d_backward<float>, avg_pool2d_backward<double>},
};

}  // namespace
}  // namespace handgrad
