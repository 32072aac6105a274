// AMX, the unit for bfloat16 that multiplies matrices: eight registers ("tiles") of 16 rows of 64
// bytes. One instruction adds to 16 × 16 sums the product of 16 rows of 16 Bf16x2 with 16 rows of
// k, of 16 lanes each.
//
// The right operand is a micro-panel of Bf16x2 as bf16.h has it. In the left one the elements of a
// row are adjacent, and rows lie at any one distance: bfloat16 values that lie in rows need no
// packing at all.
#pragma once

#include <optional>

#include "core/gemm/bf16.h"

namespace handgrad {

// True if this CPU has AMX with bfloat16 and the system grants it.
bool amx_granted();

// Bf16x2 elements are AMX's where that is the unit.
template <class Element>
bool on_amx() {
    return std::is_same_v<Element, Bf16x2> && bf16_unit() == Bf16Unit::kAmx;
}

// The rest is there if kBf16Compiled is true.

// The k that one instruction takes, in terms and in elements.
constexpr long kAmxK = kAmxSide;
constexpr long kAmxElements = kAmxK / 2;

// The tiles are this thread's as long as one of these lives: 0 to 3 for sums, 4 and 5 for left
// operands, both of so many rows, 6 and 7 for right ones, of so many elements of k. Their shapes
// are then restored, since the handler of a signal may compute amid a product.
class AmxTiles {
  public:
    explicit AmxTiles(int rows = 16, int elements = 16);
    ~AmxTiles();
    AmxTiles(const AmxTiles&) = delete;
    AmxTiles& operator=(const AmxTiles&) = delete;

  private:
    alignas(64) unsigned char before_[64];
};

// The registers that a thread holds while it multiplies these elements: AMX's tiles for its Bf16x2.
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

// Rows of Bf16x2: the distance from one to the next, and from 16 elements of a row to its next 16.
struct AmxRows {
    const Bf16x2* data;
    long row, chunk;
};

// Memory traffic that a micro-kernel sees to on its way, where it costs nothing: rows of the
// deferred store, if there is one, all of which are stored before the sums are; and in each of its
// steps through k so many lines from `next` on are prefetched to the second-level cache.
struct AmxTraffic {
    DeferredStore<float>* deferred = nullptr;
    const Bf16x2* next = nullptr;
    long lines = 0;
};

// The micro-kernel of AMX: c (+)= up to 32 rows × up to 32 lanes, `elements` of k; the rows of b
// and of c lie b_row and c_row apart. The registers take 16 rows, 16 lanes and 16 elements at a
// time: there is room for so many rows and lanes of operands and sums, and beyond the last element
// both operands have zeros.
void amx_micro_kernel(int rows, int width, long elements, const AmxRows& a, const Bf16x2* b,
                      long b_row, float* c, long c_row, bool accumulate,
                      const AmxTraffic& traffic = {});

// Operations of so many rounds of products in the tiles alone, for the peak meter.
double amx_multiply_adds(long rounds);

}  // namespace handgrad
