// The register tile of the product: a few rows by two vectors of columns, summed up in registers.
#pragma once

#include "core/deferred_store.h"
#include "core/simd.h"

namespace handgrad {

constexpr int kMR = kVectorRegisters == 32 ? 14 : 6;
constexpr int kNRVectors = 2;
template <class T>
constexpr int kNR = kNRVectors * kLanes<T>;

// How far apart rows lie that are multiplied where they are, for sums of at most kRowKC values:
// no power of two, which the cache would put on top of one another.
constexpr long kRowKC = 256;
constexpr int kRowPitch = kRowKC + 16;

// Rows of A lie as far apart as is said when they are multiplied.
constexpr int kAnyPitch = -1;

// The register tile for so many rows and a panel of this width, compiled once for float and double
// and each of these pitches.
//
// tile (+)= Aᵀ-panel × B-panel: panel_a holds Rows values for each of `depth` terms, panel_b
// Vectors · kLanes; the tile is row-major and aligned. With a Pitch, A is not packed: its rows lie
// that far apart, or `pitch` with kAnyPitch. No machine has registers for so many pointers: the
// compiler knows the distances, or every fifth row has a pointer and the others are found from it.
// A product with a Pitch of its own meets its panel of B for few rows, and sends for it as it goes.
// On the way, what lies `ahead` of these rows is sent for, unless that is 0, and what the writer
// has, if there is one, is written.
template <int Pitch = 0, class T>
void micro_kernel(int rows, int width, long k, const T* panel_a, const T* panel_b, T* tile,
                  bool accumulate, long pitch = Pitch, long prefetch_offset = 0,
                  DeferredStore<T>* deferred = nullptr);

}  // namespace handgrad
