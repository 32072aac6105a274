// Products of pairs of bfloat16 that lie in memory as they are, on either unit: what
// strided_micro_kernel.h is for numbers.
//
// Sides are multiples of 32, and so are sums; whoever has fewer fills up with zeros, both operands.
//   left    for each 32 terms of the sum, for each row its 16 pairs, side by side
//   right   for each pair of terms its lanes, side by side
#pragma once

#include "core/amx.h"

namespace handgrad {

#if defined(__AVX512F__)

constexpr long kBf16Side = kAmxSide;

inline long whole_sides(long n) { return (n + kBf16Side - 1) / kBf16Side * kBf16Side; }

// `count` values, a multiple of 16, become the nearest that bfloat16 has.
void round_in_place(float* values, long count);

// Values of rows `pitch` apart as a left operand of at most 32 terms, with zeros up to whole sides.
void round_left(Bf16x2* left, const float* values, long pitch, long rows, long k);

// Values of `rows` rows, 32 lanes of each, as a right operand: pairs of rows, `step` apart, and
// zeros up to whole sides.
void round_right(Bf16x2* right, long step, const float* values, long pitch, long rows);

// c (+)= A B while Registers<Bf16x2> live: `a_step` and `b_step` pairs from 32 terms of A, and from
// one pair of terms of B, to the next, and rows of C `c_step` apart.
void multiply_bf16x2(long rows, long lanes, long k, const Bf16x2* a, long a_step, const Bf16x2* b,
                     long b_step, float* c, long c_step, bool accumulate);

#endif

}  // namespace handgrad
