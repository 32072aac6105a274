// Products of pairs of bfloat16 that lie in memory as they are, on either unit: what strided_tile.h
// is for numbers.
//
// Sides are multiples of 32, and so are sums; whoever has fewer fills up with zeros, both operands.
//   left    for each 32 terms of the sum, for each row its 16 pairs, side by side
//   right   for each pair of terms its lanes, side by side
#pragma once

#include "core/amx.h"

namespace handgrad {

#if defined(__AVX512F__)

constexpr long kPairSide = kAmxSide;

inline long whole_sides(long n) { return (n + kPairSide - 1) / kPairSide * kPairSide; }

// `count` values, a multiple of 16, become the nearest that bfloat16 has.
void round_in_place(float* values, long count);

// Values of rows `pitch` apart as a left operand of at most 32 terms, with zeros up to whole sides.
void round_left(Pair* left, const float* values, long pitch, long rows, long terms);

// Values of `rows` rows, 32 lanes of each, as a right operand: pairs of rows, `step` apart, and
// zeros up to whole sides.
void round_right(Pair* right, long step, const float* values, long pitch, long rows);

// c (+)= A B while Registers<Pair> live: `a_step` and `b_step` pairs from 32 terms of A, and from
// one pair of terms of B, to the next, and rows of C `c_step` apart.
void multiply_pairs(long rows, long lanes, long terms, const Pair* a, long a_step, const Pair* b,
                    long b_step, float* c, long c_step, bool accumulate);

#endif

}  // namespace handgrad
