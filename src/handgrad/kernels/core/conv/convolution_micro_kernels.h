// The micro-kernels of convolutions, compiled once for all kernels.
//
// Both have `rows` <= kMR rows and lanes as wide as the micro-panel. The image is their left
// operand, read a value at a time where it lies; see convolution.h.
#pragma once

#include "core/gemm/bf16.h"

namespace handgrad {

// tile[i, lanes] = Σ_t image[offsets[t] + i] · panel[t, lanes].
template <class Element>
void gather_micro_kernel(int rows, int width, long terms, const Element* image, const long* offsets,
                         const Element* panel, SumOf<Element>* tile);

// Output positions: `columns` neighbours in each of `rows` rows that lie row_step apart in the
// image.
struct Positions {
    long rows, columns, row_step;
};

// The values of an image that is summed over its positions: those of Bf16x2 lie as Bf16.
template <class Element>
using PositionOf = std::conditional_t<std::is_same_v<Element, Bf16x2>, Bf16, Element>;

// tile[i, lanes] += Σ_p image[offsets[i] + p] · panel[p, lanes] over positions p. In a panel of
// Bf16x2 a row of positions starts a new element, and the value after an odd row is read as well.
template <class Element>
void correlate_micro_kernel(int rows, int width, const Positions& positions,
                            const PositionOf<Element>* image, const long* offsets,
                            const Element* panel, SumOf<Element>* tile);

}  // namespace handgrad
