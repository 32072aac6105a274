#include "core/micro_kernel.h"

#include <array>
#include <utility>

#include "core/memory.h"

namespace handgrad {
namespace {

// The unrolling of the loop over k, between which rows are prefetched and stored. Sanitizers add so
// much to each iteration that compiling eight takes minutes.
constexpr int kUnroll = kExactBlocks ? 2 : 8;

template <class T, int Rows, int Vectors, int Pitch>
void multiply(long k, const T* panel_a, const T* panel_b, T* tile, bool accumulate, long pitch,
              long prefetch_offset, DeferredStore<T>* deferred) {
    constexpr int width = Vectors * kLanes<T>;
    Vec<T> sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++)
            sums[i][v] = accumulate ? load(tile + i * width + v * kLanes<T>) : Vec<T>{};
    const long to_next = Pitch == 0 ? 1 : Pitch == kAnyPitch ? pitch : Pitch;
    const T* a_at[] = {panel_a, panel_a + 5 * to_next, panel_a + 10 * to_next};
    constexpr long kPrefetchDistance = 16 * width;
    const auto rank1_update = [&] {
        Vec<T> b[Vectors];
        for (int v = 0; v < Vectors; v++) {
            b[v] = load(panel_b + v * kLanes<T>);
            if (Pitch > 0) __builtin_prefetch(panel_b + v * kLanes<T> + kPrefetchDistance);
        }
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> a = splat(a_at[i / 5][i % 5 * to_next]);
            for (int v = 0; v < Vectors; v++) sums[i][v] += a * b[v];
        }
        for (const T*& a : a_at) a += Pitch == 0 ? Rows : 1;
        panel_b += width;
    };
    long p = 0;
    for (; p + kUnroll <= k; p += kUnroll) {
        if (Pitch == kAnyPitch && prefetch_offset != 0 && p % (64 / long(sizeof(T))) == 0)
#pragma GCC unroll 16
            for (int i = 0; i < Rows; i++)
                __builtin_prefetch(a_at[i / 5] + i % 5 * to_next + prefetch_offset, 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < kUnroll; i++) rank1_update();
        if (deferred != nullptr) deferred->store_row();
    }
    for (; p < k; p++) rank1_update();
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(tile + i * width + v * kLanes<T>, sums[i][v]);
}

}  // namespace

template <int Pitch, class T>
void micro_kernel(int rows, int width, long k, const T* panel_a, const T* panel_b, T* tile,
                  bool accumulate, long pitch, long prefetch_offset, DeferredStore<T>* deferred) {
    using Product = void (*)(long, const T*, const T*, T*, bool, long, long, DeferredStore<T>*);
    static constexpr auto products = []<int... I>(std::integer_sequence<int, I...>) {
        return std::array<std::array<Product, 2>, sizeof...(I)>{
            std::array<Product, 2>{multiply<T, I + 1, 1, Pitch>, multiply<T, I + 1, 2, Pitch>}...};
    }(std::make_integer_sequence<int, kMR>{});
    products[static_cast<std::size_t>(rows - 1)][width == kLanes<T> ? 0 : 1](
        k, panel_a, panel_b, tile, accumulate, pitch, prefetch_offset, deferred);
}

// Every pitch that is multiplied with.
template void micro_kernel<0>(int, int, long, const float*, const float*, float*, bool, long, long,
                              DeferredStore<float>*);
template void micro_kernel<kRowPitch>(int, int, long, const float*, const float*, float*, bool,
                                      long, long, DeferredStore<float>*);
template void micro_kernel<kAnyPitch>(int, int, long, const float*, const float*, float*, bool,
                                      long, long, DeferredStore<float>*);
template void micro_kernel<0>(int, int, long, const double*, const double*, double*, bool, long,
                              long, DeferredStore<double>*);
template void micro_kernel<kRowPitch>(int, int, long, const double*, const double*, double*, bool,
                                      long, long, DeferredStore<double>*);
template void micro_kernel<kAnyPitch>(int, int, long, const double*, const double*, double*, bool,
                                      long, long, DeferredStore<double>*);

}  // namespace handgrad
