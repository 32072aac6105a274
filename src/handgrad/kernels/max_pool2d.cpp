// Max pooling: the largest value of every window and its index.
#include <atomic>
#include <limits>

#include "core/binding/binding.h"
#include "core/conv/pooling.h"
#include "core/runtime/gil.h"
#include "core/runtime/threads.h"
#include "core/simd/simd.h"

namespace handgrad {
namespace {

// Indices are kept as integers as wide as the values, so that both fill the same lanes.
template <class T>
using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// The best so far of some windows side by side, and where it was found.
template <class T>
struct Best {
    Vec<T> value = splat(-std::numeric_limits<T>::infinity());
    Vec<Index<T>> index = splat(Index<T>(-1));

    // Better values replace the best, NaN above all, and the first one whatever it is.
    void take(Vec<T> other, Vec<Index<T>> here) {
        const auto better = (~(other <= value) & (value == value)) | (index < 0);
        value = better ? other : value;
        index = better ? here : index;
    }
};

// The windows of output row j, a vector at a time; all their columns lie inside the image.
template <class T>
void pool_row(const Pooling& pool, long j, const T* image, T* best, Index<T>* winner,
              Vec<Index<T>> numbers) {
    const Vec<Index<T>> steps = static_cast<Index<T>>(pool.stride_w) * numbers;
    for (long k = 0; k < pool.out_w; k += kLanes<T>) {
        const long count = std::min<long>(kLanes<T>, pool.out_w - k);
        Best<T> so_far;
        pool.for_each_offset_row(j, [&](long y, long shift) {
            const long at = y * pool.width + shift + k * pool.stride_w;
            so_far.take(load_strided(image + at, pool.stride_w, count),
                        static_cast<Index<T>>(at) + steps);
        });
        masked_store(best + k, so_far.value, count);
        masked_store(winner + k, so_far.index, count);
    }
}

// The same where windows are two columns wide and side by side: a row of the image is read once.
template <class T>
void pool_row_in_twos(const Pooling& pool, long j, const T* image, T* best, Index<T>* winner,
                      Vec<Index<T>> numbers) {
    for (long k = 0; k < pool.out_w; k += kLanes<T>) {
        const long count = std::min<long>(kLanes<T>, pool.out_w - k);
        Best<T> so_far;
        for (long m = 0; m < pool.kernel_h; m++) {
            const long at = (j * pool.stride_h + m) * pool.width + 2 * k;
            const auto [left, right] = load_interleaved(image + at, count);
            const Vec<Index<T>> here = static_cast<Index<T>>(at) + Index<T>(2) * numbers;
            if (m == 0)
                so_far = {left, here};
            else
                so_far.take(left, here);
            so_far.take(right, here + Index<T>(1));
        }
        masked_store(best + k, so_far.value, count);
        masked_store(winner + k, so_far.index, count);
    }
}

// The same where padding lies beside the image: a kernel offset at a time for the output positions
// whose column is in the image.
template <class T>
void pool_padded_row(const Pooling& pool, long j, const T* image, T* best, Index<T>* winner,
                     Vec<Index<T>> numbers) {
    const Vec<Index<T>> steps = static_cast<Index<T>>(pool.stride_w) * numbers;
    std::fill_n(best, pool.out_w, -std::numeric_limits<T>::infinity());
    std::fill_n(winner, pool.out_w, -1);
    pool.for_each_offset_row(j, [&](long y, long shift) {
        const long last = pool.last_inside(shift);
        for (long k = pool.first_inside(shift); k < last; k += kLanes<T>) {
            const long count = std::min<long>(kLanes<T>, last - k);
            const long at = y * pool.width + shift + k * pool.stride_w;
            Best<T> so_far{masked_load(best + k, count), masked_load(winner + k, count)};
            so_far.take(load_strided(image + at, pool.stride_w, count),
                        static_cast<Index<T>>(at) + steps);
            masked_store(best + k, so_far.value, count);
            masked_store(winner + k, so_far.index, count);
        }
    });
}

template <class T>
void max_pool2d_forward(In<T> x, Out<T> y, Out<Index<T>> winner, const PoolingSizes& sizes) {
    const Check check;
    const Pooling pool(check, sizes, "x", x, "y", y, 8 * sizeof(Index<T>));
    check.values("winner", winner, y.size());
    if (x.size() == 0 && y.size() == 0) return;
    Vec<Index<T>> numbers;
    for (int i = 0; i < kLanes<T>; i++) numbers[i] = i;
    const WithoutGil unlocked;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long row = begin * pool.out_h; row < end * pool.out_h; row++) {
            const long plane = row / pool.out_h, j = row % pool.out_h;
            const T* image = x.data() + plane * pool.values();
            T* best = y.data() + row * pool.out_w;
            Index<T>* indices = winner.data() + row * pool.out_w;
            const auto row_of = pool.in_twos()    ? pool_row_in_twos<T>
                                : pool.pad_w == 0 ? pool_row<T>
                                                  : pool_padded_row<T>;
            row_of(pool, j, image, best, indices, numbers);
        }
    });
}

// dx of one plane whose windows are side by side and two columns wide: every position at once, a
// vector of windows at a time.
template <class T>
void scatter_in_twos(const Pooling& pool, const T* gradient, const Index<T>* winner, T* image,
                     Vec<Index<T>> numbers) {
    if (!pool.gapless()) std::fill_n(image, pool.values(), T(0));
    for (long j = 0; j < pool.out_h; j++, gradient += pool.out_w, winner += pool.out_w)
        for (long k = 0; k < pool.out_w; k += kLanes<T>) {
            const long count = std::min<long>(kLanes<T>, pool.out_w - k);
            const Vec<T> g = masked_load(gradient + k, count);
            const Vec<Index<T>> indices = masked_load(winner + k, count) - Index<T>(2) * numbers;
            const auto won_at = [&](long at) {
                return indices == static_cast<Index<T>>(at) ? g : Vec<T>{};
            };
            for (long m = 0; m < pool.kernel_h; m++) {
                const long at = (j * pool.stride_h + m) * pool.width + 2 * k;
                store_interleaved(image + at, won_at(at), won_at(at + 1), count);
            }
        }
}

template <class T>
void max_pool2d_backward(In<T> dy, In<Index<T>> winner, Out<T> dx, const PoolingSizes& sizes) {
    const Check check;
    const Pooling pool(check, sizes, "dx", dx, "dy", dy, 8 * sizeof(Index<T>));
    check.values("winner", winner, dy.size());
    if (dx.size() == 0 && dy.size() == 0) return;
    Vec<Index<T>> numbers;
    for (int i = 0; i < kLanes<T>; i++) numbers[i] = i;
    std::atomic<bool> strayed{false};
    const WithoutGil unlocked;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        bool outside = false;
        for (long plane = begin; plane < end; plane++) {
            T* image = dx.data() + plane * pool.values();
            const T* gradient = dy.data() + plane * pool.windows();
            const Index<T>* indices = winner.data() + plane * pool.windows();
            if (pool.in_twos()) {
                scatter_in_twos(pool, gradient, indices, image, numbers);
                continue;
            }
            std::fill_n(image, pool.values(), T(0));
            for (long i = 0; i < pool.windows(); i++) {
                const bool inside = indices[i] >= 0 && indices[i] < pool.values();
                if (inside) image[indices[i]] += gradient[i];
                outside |= !inside;
            }
        }
        if (outside) strayed.store(true, std::memory_order_relaxed);
    });
    if (strayed.load()) throw nb::index_error("max_pool2d: a winner lies outside of its image");
}

const KernelRegistrar registrars[] = {
    {"max_pool2d_forward", max_pool2d_forward<float>, max_pool2d_forward<double>},
    {"max_pool2d_backward", max_pool2d_backward<float>, max_pool2d_backward<double>},
};

}  // namespace
}  // namespace handgrad
