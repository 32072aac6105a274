// The micro-kernel of the product: MR rows by NR columns, two vectors, summed up in registers.
#pragma once

#include "core/gemm/deferred_store.h"
#include "core/gemm/register_tile.h"

namespace handgrad {

// With 16 registers a micro-kernel has few rows, and a value of A serves two multiply-adds: a large
// A is packed, its micro-panels stay small, and the next one is prefetched.
constexpr bool kPrefersPackedA = kVectorRegisters == 16;

// The distance between rows that are multiplied unpacked, for sums of at most kRowKC values: no
// power of two, which the cache would put on top of one another.
constexpr long kRowKC = 256;
constexpr int kRowPitch = kRowKC + 16;

// Rows of A lie as far apart as is said when they are multiplied.
constexpr int kAnyPitch = -1;

// The micro-kernel for so many rows and a micro-panel of this width, compiled once for each element
// and each of these pitches.
//
// tile (+)= Aᵀ-panel × B-panel: for each k panel_a holds Rows elements and panel_b Vectors ·
// kLanes; the tile is row-major and aligned. With a Pitch, A is not packed: its rows lie that far
// apart, or `pitch` with kAnyPitch. No machine has registers for so many pointers: the compiler
// knows the distances, or every fifth row has a pointer and the others are found from it. With a
// compile-time pitch, B is reused for few rows, so it is prefetched. On the way, the memory
// `prefetch_offset` beyond these rows is prefetched, unless that is 0, and rows of the deferred
// store, if there is one, are stored.
template <int Pitch = 0, class Element>
void micro_kernel(int rows, int width, long k, const Element* panel_a, const Element* panel_b,
                  SumOf<Element>* tile, bool accumulate, long pitch = Pitch,
                  long prefetch_offset = 0, DeferredStore<SumOf<Element>>* deferred = nullptr);

}  // namespace handgrad
