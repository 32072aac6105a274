// AMX, the unit for bfloat16 that multiplies matrices: eight registers ("tiles") of 16 rows of 64
// bytes. One instruction adds to 16 × 16 sums the product of 16 rows of 16 pairs of terms with 16
// pairs of terms of 16 lanes.
//
// The right operand is a panel of pairs as bf16.h has it. The left one wants each row's pairs side
// by side, rows at any one distance: bfloat16 values that lie in rows need no packing at all.
#pragma once

#include <optional>

#include "core/bf16.h"

namespace handgrad {

// Whether this CPU has AMX with bfloat16 and the system hands it out.
bool amx_granted();

// Pairs are AMX's where that is the unit.
template <class Element>
bool on_amx() {
    return std::is_same_v<Element, Bf16x2> && bf16_unit() == Bf16Unit::kAmx;
}

// What follows is there where kBf16Compiled is true.

// Terms that one instruction takes.
constexpr long kAmxK = kAmxSide;
constexpr long kAmxElements = kAmxK / 2;

// The tiles are this thread's as long as one of these lives: 0 to 3 for sums, 4 and 5 for left
// operands, both of so many rows, 6 and 7 for right ones, of so many pairs of terms. Their shapes
// are then what they were before, as where the handler of a signal computes amid a product.
class AmxTiles {
  public:
    explicit AmxTiles(int rows = 16, int elements = 16);
    ~AmxTiles();
    AmxTiles(const AmxTiles&) = delete;
    AmxTiles& operator=(const AmxTiles&) = delete;

  private:
    alignas(64) unsigned char before_[64];
};

// What a thread holds while it multiplies these elements: AMX's tiles if they are its pairs.
template <class Element>
struct Registers {
    Registers() {}
};
template <>
struct Registers<Bf16x2> {
    std::optional<AmxTiles> amx;
    Registers() {
        if (bf16_unit() == Bf16Unit::kAmx) amx.emplace();
    }
};

// The compiler does not know that tile instructions read memory: what was written must be there.
inline void see_memory(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// Rows of pairs: how far it is from one to the next, and from 16 pairs of a row to its next 16.
struct AmxRows {
    const Bf16x2* data;
    long row, chunk;
};

// c (+)= up to 32 rows × up to 32 lanes of pairs; the rows of b and of c lie b_row and c_row apart.
// The registers take 16 rows, 16 lanes and 16 pairs at a time: there is room for so many rows and
// lanes of operands and sums, and beyond the last pair both operands have zeros.
void amx_micro_kernel(int rows, int width, long elements, const AmxRows& a, const Bf16x2* b,
                      long b_row, float* c, long c_row, bool accumulate);

// Operations of so many rounds of products in the tiles alone, for the peak meter.
double amx_multiply_adds(long rounds);

}  // namespace handgrad
