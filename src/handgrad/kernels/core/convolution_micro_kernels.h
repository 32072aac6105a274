// The micro-kernels of convolutions, compiled once for all kernels.
//
// Both have `rows` <= kMR rows and lanes as wide as the micro-panel. The image is their left
// operand, read a value at a time where it lies; see convolution.h.
#pragma once

#include "core/bf16.h"

namespace handgrad {

// tile[i, lanes] = Σ_t image[offsets[t] + i] · panel[t, lanes].
void gather_micro_kernel(int rows, int width, long terms, const float* image, const long* offsets,
                         const float* panel, float* tile);
void gather_micro_kernel(int rows, int width, long terms, const double* image, const long* offsets,
                         const double* panel, double* tile);
void gather_micro_kernel(int rows, int width, long terms, const Bf16x2* image, const long* offsets,
                         const Bf16x2* panel, float* tile);

// Output positions: `columns` neighbours in each of `rows` rows that lie row_step apart in the
// image.
struct Positions {
    long rows, columns, row_step;
};

// tile[i, lanes] += Σ_p image[offsets[i] + p] · panel[p, lanes] over positions p. In a panel of
// Bf16x2 a row of positions starts a new element.
void correlate_micro_kernel(int rows, int width, const Positions& positions, const float* image,
                            const long* offsets, const float* panel, float* tile);
void correlate_micro_kernel(int rows, int width, const Positions& positions, const double* image,
                            const long* offsets, const double* panel, double* tile);
void correlate_micro_kernel(int rows, int width, const Positions& positions, const Bf16* image,
                            const long* offsets, const Bf16x2* panel, float* tile);

}  // namespace handgrad
