#include "core/conv/convolution_micro_kernels.h"

namespace handgrad {
namespace {

template <class Element>
struct GatherLoop {
    using T = SumOf<Element>;

    template <int Rows, int Vectors>
    static void run(long terms, const Element* image, const long* offsets, const Element* panel,
                    T* tile) {
        RegisterTile<Element, Rows, Vectors> c;
        c.begin(tile, c.kWidth, false);
#pragma GCC unroll 4
        for (long t = 0; t < terms; t++, panel += c.kWidth)
            c.add([a = image + offsets[t]](int i) { return a[i]; }, panel);
        c.end(tile, c.kWidth);
    }
};

// Even: a row of positions fills whole elements.
template <class Element, bool Even>
struct CorrelateLoop {
    using T = SumOf<Element>;
    using Position = PositionOf<Element>;

    template <int Rows, int Vectors>
    static void run(const Positions& positions, const Position* image, const long* offsets,
                    const Element* panel, T* tile) {
        constexpr long kAtOnce = sizeof(Element) / sizeof(Position);
        RegisterTile<Element, Rows, Vectors> c;
        c.begin(tile, c.kWidth, true);
        // One pointer moves, and offsets stay: moving a pointer for each row took up to 20 %
        // longer.
        long offset[Rows];
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) offset[i] = offsets[i];
        const long columns = positions.columns, count = (columns + kAtOnce - 1) / kAtOnce;
        const long to_next = positions.row_step - count * kAtOnce;
        // One loop for all rows: between two loops the sums would go to memory and back, which
        // takes a third of the time of short rows.
        long left = count;
        for (long p = positions.rows * count; p > 0; p--, panel += c.kWidth) {
            // The value beside the last one of an odd row may be NaN.
            const std::uint32_t kept = Even || left > 1 ? ~0u : 0xffffu;
            c.add(
                [&](int i) {
                    Element element;
                    std::memcpy(&element, image + offset[i], sizeof element);
                    if constexpr (!Even) element = Element(std::uint32_t(element) & kept);
                    return element;
                },
                panel);
            left--;
            const long at_end = -static_cast<long>(left == 0);
            image += kAtOnce + (to_next & at_end);
            left += count & at_end;
        }
        c.end(tile, c.kWidth);
    }
};

}  // namespace

template <class Element>
void gather_micro_kernel(int rows, int width, long terms, const Element* image, const long* offsets,
                         const Element* panel, SumOf<Element>* tile) {
    sized<GatherLoop<Element>>(rows, width / kLanes<SumOf<Element>>)(terms, image, offsets, panel,
                                                                     tile);
}

template <class Element>
void correlate_micro_kernel(int rows, int width, const Positions& positions,
                            const PositionOf<Element>* image, const long* offsets,
                            const Element* panel, SumOf<Element>* tile) {
    const int vectors = width / kLanes<SumOf<Element>>;
    if constexpr (std::is_same_v<Element, Bf16x2>)
        if (positions.columns % 2 != 0)
            return sized<CorrelateLoop<Element, false>>(rows, vectors)(positions, image, offsets,
                                                                       panel, tile);
    sized<CorrelateLoop<Element, true>>(rows, vectors)(positions, image, offsets, panel, tile);
}

#define HANDGRAD_MICRO_KERNELS(Element)                                                            \
    template void gather_micro_kernel(int, int, long, const Element*, const long*, const Element*, \
                                      SumOf<Element>*);                                            \
    template void correlate_micro_kernel(int, int, const Positions&, const PositionOf<Element>*,   \
                                         const long*, const Element*, SumOf<Element>*);
HANDGRAD_MICRO_KERNELS(float)
HANDGRAD_MICRO_KERNELS(double)
#if defined(__AVX512F__)
HANDGRAD_MICRO_KERNELS(Bf16x2)
#endif
#undef HANDGRAD_MICRO_KERNELS

}  // namespace handgrad
