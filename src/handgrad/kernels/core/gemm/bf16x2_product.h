// Products of Bf16x2 that lie in memory unpacked, on either unit, as strided_micro_kernel.h has
// them for numbers.
//
// Sides are multiples of 32, and so is k; zeros fill up smaller operands, both of them.
//   left    for each 32 terms of the sum, for each row its 16 elements, adjacent
//   right   for each element of k its lanes, adjacent
#pragma once

#include "core/gemm/amx.h"

namespace handgrad {

#if defined(__AVX512F__)

constexpr long kBf16Side = kAmxSide;

inline long whole_sides(long n) { return (n + kBf16Side - 1) / kBf16Side * kBf16Side; }

// `count` values, a multiple of 16, become the nearest that bfloat16 has.
void round_in_place(float* values, long count);

// Rounds values of rows `pitch` apart to a left operand of k <= 32, with zeros up to whole sides.
void round_left(Bf16x2* left, const float* values, long pitch, long rows, long k);

// Rounds values of `rows` rows, 32 lanes of each, to a right operand: two rows to an element,
// elements `step` apart, and zeros up to whole sides.
void round_right(Bf16x2* right, long step, const float* values, long pitch, long rows);

// c (+)= A B while Registers<Bf16x2> live: the distance is `a_step` from 32 terms of A to the next,
// `b_step` from one element of k of B to the next, and `c_step` between rows of C.
void multiply_bf16x2(long rows, long lanes, long k, const Bf16x2* a, long a_step, const Bf16x2* b,
                     long b_step, float* c, long c_step, bool accumulate);

#endif

}  // namespace handgrad
