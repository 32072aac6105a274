// The tiled product in bfloat16: operands rounded from float32 as they are packed, sums in float32.
//
// The loops are those of matmul.h with another register tile. Terms go in pairs, the form both
// instructions want: a panel of B holds, per pair of terms, the pair of each lane side by side.
//   avx512_bf16  one vector of pairs times one broadcast pair; panels of A look like those of B.
//   amx          16×16 tiles, 32 terms at a time; panels of A hold each row's pairs side by side.
#pragma once

#include "core/matmul.h"

namespace handgrad {

enum class Bf16Unit { kNone, kAvx512, kAmx };

// The unit in use: the best this CPU and system offer, or what HANDGRAD_BF16 names.
Bf16Unit bf16_unit();
const char* bf16_unit_name();

// C = A B on the unit in use; rounding to nearest even on the way in. Not for kNone.
void multiply_bf16(long rows, long columns, long depth, const StridedPack<float>& a,
                   const StridedPack<float>& b, const WriteTile<float>& finish);

// Multiply-adds on the unit in registers alone, for the peak meter: operations of so many rounds.
double bf16_multiply_adds(long rounds);

}  // namespace handgrad
