#include "core/gemm/micro_kernel.h"

#include "core/runtime/memory.h"

namespace handgrad {
namespace {

// The unrolling of the loop over k, between which rows are prefetched and stored. Sanitizers add so
// much to each iteration that compiling more takes minutes.
constexpr int kUnroll = kFallback ? 1 : kExactBlocks ? 2 : 4;

template <int Pitch, class Element>
struct PanelLoop {
    using T = SumOf<Element>;

    template <int Rows, int Vectors>
    static void run(long k, const Element* panel_a, const Element* panel_b, T* tile,
                    bool accumulate, long pitch, long prefetch_offset, DeferredStore<T>* deferred) {
        constexpr int width = Vectors * kLanes<T>;
        RegisterTile<Element, Rows, Vectors> c;
        c.begin(tile, width, accumulate);
        const long to_next = Pitch == 0 ? 1 : Pitch == kAnyPitch ? pitch : Pitch;
        const Element* a_at[] = {panel_a, panel_a + 5 * to_next, panel_a + 10 * to_next};
        constexpr long kPrefetchDistance = 16 * width;
        const auto rank1_update = [&] {
            if (Pitch > 0)
                for (int v = 0; v < Vectors; v++)
                    __builtin_prefetch(panel_b + v * kLanes<T> + kPrefetchDistance);
            c.add([&](int i) { return a_at[i / 5][i % 5 * to_next]; }, panel_b);
#pragma GCC unroll 3
            for (const Element*& a : a_at) a += Pitch == 0 ? Rows : 1;
            panel_b += width;
        };
        long p = 0;
        for (; p + kUnroll <= k; p += kUnroll) {
            if (Pitch == kAnyPitch && prefetch_offset != 0 && p % (64 / long(sizeof(T))) == 0)
#pragma GCC unroll 16
                for (int i = 0; i < Rows; i++)
                    __builtin_prefetch(a_at[i / 5] + i % 5 * to_next + prefetch_offset, 0, 2);
            if (Pitch == 0 && !kPrefersPackedA && prefetch_offset != 0)
#pragma GCC unroll 16
                for (int i = 0; i < Rows * kUnroll; i += 64 / int(sizeof(T)))
                    __builtin_prefetch(a_at[0] + i + prefetch_offset, 0, 2);
#pragma GCC unroll 4
            for (int i = 0; i < kUnroll; i++) rank1_update();
            if (deferred != nullptr) deferred->store_row();
        }
        for (; p < k; p++) rank1_update();
        c.end(tile, width);
    }
};

}  // namespace

template <int Pitch, class Element>
void micro_kernel(int rows, int width, long k, const Element* panel_a, const Element* panel_b,
                  SumOf<Element>* tile, bool accumulate, long pitch, long prefetch_offset,
                  DeferredStore<SumOf<Element>>* deferred) {
    sized<PanelLoop<Pitch, Element>>(rows, width / kLanes<SumOf<Element>>)(
        k, panel_a, panel_b, tile, accumulate, pitch, prefetch_offset, deferred);
}

// Every element and pitch that is multiplied with.
#define HANDGRAD_MICRO_KERNEL(Pitch, Element)                                         \
    template void micro_kernel<Pitch>(int, int, long, const Element*, const Element*, \
                                      SumOf<Element>*, bool, long, long,              \
                                      DeferredStore<SumOf<Element>>*);
HANDGRAD_MICRO_KERNEL(0, float)
HANDGRAD_MICRO_KERNEL(0, double)
HANDGRAD_MICRO_KERNEL(kRowPitch, float)
HANDGRAD_MICRO_KERNEL(kRowPitch, double)
HANDGRAD_MICRO_KERNEL(kAnyPitch, float)
HANDGRAD_MICRO_KERNEL(kAnyPitch, double)
#if defined(__AVX512F__)
HANDGRAD_MICRO_KERNEL(0, Bf16x2)
HANDGRAD_MICRO_KERNEL(kRowPitch, Bf16x2)
#endif
#undef HANDGRAD_MICRO_KERNEL

}  // namespace handgrad
