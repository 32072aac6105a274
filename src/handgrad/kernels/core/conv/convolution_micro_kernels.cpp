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

template <class Element>
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
        const long columns = positions.columns, row_step = positions.row_step;
        for (long j = 0; j < positions.rows; j++, image += row_step) {
            const Position *a = image, *end = image + columns;
#pragma GCC unroll 4
            for (; a + kAtOnce <= end; a += kAtOnce, panel += c.kWidth)
                c.add(
                    [&](int i) {
                        Element element;
                        std::memcpy(&element, a + offset[i], sizeof element);
                        return element;
                    },
                    panel);
            // The value beside the last one of an odd row may be NaN.
            if (kAtOnce > 1 && a < end) {
                c.add([&](int i) { return static_cast<Element>(a[offset[i]]); }, panel);
                panel += c.kWidth;
            }
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
    sized<CorrelateLoop<Element>>(rows, width / kLanes<SumOf<Element>>)(positions, image, offsets,
                                                                        panel, tile);
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
