// The tiled matrix product that carries everything: C = A B, in the five loops of BLIS.
//
// Split A, B and C into tiles; then C_ij = Σ_t A_it B_tj.
// With A = [[1,2,3,4],[5,6,7,8],...], the rows of B 1, 2, 3, 4 repeated, and 2×2 tiles,
//     C_00 = A_00 B_00        + A_01 B_10
//          = [[5,5],[17,17]]  + [[25,25],[53,53]]  = [[30,30],[70,70]].
// The same identity at every size, from the outside in:
//   5. columns of C in blocks of NC and 3. its rows in blocks of MC: an MC × NC block is one piece
//      of work for one thread;
//   4. k in blocks of KC, so that packed operands stay in the caches (caches.h says how large);
//   2. the micro-panels of B in the block, NR wide, and 1. those of A, MR wide;
//   0. the micro-kernel (micro_kernel.h): one k at a time, a column of A's micro-panel times a row
//      of B's is added to MR × NR sums in registers.
//
// Two pieces around it can be replaced:
//   pack      gathers an operand into a micro-panel: for each k in turn, `width` values side by
//             side.
//   epilogue  takes each finished tile: adds the bias, applies the activation, stores or scatters
//             it. Tiles begin at any column: a product of few rows is computed as (Bᵀ Aᵀ)ᵀ, see
//             matmul.cpp.
//
// Assumed: micro-panels are aligned to vectors, and the last one of B is filled up to whole vectors
// with zeros, whose sums the epilogue leaves out; a left operand whose values along k are adjacent
// is read where it lies, unless its rows fall into one set of the first-level cache; every value of
// C is summed in one fixed order, whatever the blocks and threads. Elements need not be of the type
// of the sums (bf16.h has Bf16x2); the loops are compiled once for each, in matmul.cpp.
//
// Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5; Goto, van de
// Geijn, Anatomy of high-performance matrix multiplication (2008), for packing and blocking; Van
// Zee, van de Geijn, BLIS: a framework for rapidly instantiating BLAS functionality (2015), for the
// loops.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/gemm/micro_kernel.h"
#include "core/gemm/pack.h"
#include "core/runtime/caches.h"
#include "core/runtime/memory.h"
#include "core/runtime/threads.h"

namespace handgrad {

// The pack of operands of which the panel elements are T.
struct Bf16x2Pack;
template <class T>
using PackOf = std::conditional_t<std::is_same_v<T, Bf16x2>, Bf16x2Pack, StridedPack<T>>;

// K in equal blocks of KC <= most.
struct KBlocks {
    long count, size;
    explicit KBlocks(long k, long most, long multiple = 1)
        : count(std::max((k + most - 1) / most, 1L)),
          size(((k + count - 1) / count + multiple - 1) / multiple * multiple) {}
};

// Operands are packed in micro-panels. Rows of A: tiles of at most MR that differ by one row at
// most.
struct RowTiles {
    long rows, count;
    explicit RowTiles(long all) : rows(all), count((all + kMR - 1) / kMR) {}
    long at(long t) const { return t * rows / count; }
    // The end of the tile in which the first `some` rows, at least one, end.
    long end_of(long some) const {
        long t = 0;
        while (at(t + 1) < some) t++;
        return at(t + 1);
    }
    int rows_of(long t) const { return static_cast<int>(at(t + 1) - at(t)); }
    int lanes(long t) const { return rows_of(t); }
    int width(long t) const { return rows_of(t); }
};

// Columns of B: micro-panels NR wide; the last may be narrower.
template <class T>
struct ColumnPanels {
    long columns, count;
    explicit ColumnPanels(long all) : columns(all), count((all + kNR<T> - 1) / kNR<T>) {}
    long at(long q) const { return q * kNR<T>; }
    int lanes(long q) const { return static_cast<int>(std::min<long>(kNR<T>, columns - at(q))); }
    int width(long q) const { return lanes(q) <= kLanes<T> ? kLanes<T> : kNR<T>; }
};

struct Range {
    long begin, end;
    long count() const { return end - begin; }
};

// Any epilogue, as code that is compiled once can call it. One that can defers its stores to the
// micro-kernel of the next tile, where there is a `deferred`.
template <class T>
class AnyEpilogue {
  public:
    template <class Epilogue>
    AnyEpilogue(const Epilogue& epilogue)
        : epilogue_(&epilogue),
          run_([](const void* any, long row, int rows, long column, int columns, T* tile, int width,
                  DeferredStore<T>* deferred) {
              const auto& f = *static_cast<const Epilogue*>(any);
              if constexpr (std::is_invocable_v<const Epilogue&, long, int, long, int, T*, int,
                                                DeferredStore<T>&>)
                  if (deferred != nullptr)
                      return f(row, rows, column, columns, tile, width, *deferred);
              f(row, rows, column, columns, tile, width);
          }) {}

    void operator()(long row, int rows, long column, int columns, T* tile, int width,
                    DeferredStore<T>* deferred = nullptr) const {
        run_(epilogue_, row, rows, column, columns, tile, width, deferred);
    }

  private:
    const void* epilogue_;
    void (*run_)(const void*, long, int, long, int, T*, int, DeferredStore<T>*);
};

// C = A B over all threads; the packs gather, and `epilogue` receives each tile of C once.
template <class T>
void multiply(long rows, long columns, long k, const PackOf<T>& pack_a, const PackOf<T>& pack_b,
              const AnyEpilogue<SumOf<T>>& epilogue);

// The same on the calling thread.
template <class T>
void multiply_here(long rows, long columns, long k, const PackOf<T>& pack_a,
                   const PackOf<T>& pack_b, const AnyEpilogue<SumOf<T>>& epilogue);

// The division of C = A B, both row-major in float32, into work: the benchmarks predict its time.
struct ProductPlan {
    bool transposed;  // as Cᵀ = Bᵀ Aᵀ; what follows is then of that product
    bool a_in_place, pack_a_once, pack_b_once;
    long kc, nc, down, across;  // columns of an NC block; blocks of C by rows and by columns
};
ProductPlan plan_product(long rows, long columns, long k);

// True if a result of so many values outgrows the second-level cache, and is better written by
// non-temporal stores: the values that it would displace there are worth as much as itself.
template <class T>
bool outgrows_caches(long count) {
    return count * static_cast<long>(sizeof(T)) >= 2 * caches().l2.bytes;
}

// Stores the first `have` lanes of a result; whole vectors of a large one by non-temporal stores.
template <class T>
void put(T* target, Vec<T> v, int have, bool large) {
    if (have < kLanes<T>)
        masked_store(target, v, have);
    else if (large)
        stream(target, v);
    else
        store(target, v);
}

// An epilogue that stores the tile to a row-major matrix, with a deferred store if it is large.
template <class T>
struct StoreEpilogue {
    T* data;
    long stride;
    bool large = false;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++) {
            T* target = data + (row + i) * stride + column;
            for (int c = 0; c < columns; c += kLanes<T>) {
                const Vec<T> v = load(tile + i * width + c);
                put(target + c, v, std::min(kLanes<T>, columns - c), large);
            }
        }
    }
    void operator()(long row, int rows, long column, int columns, const T* tile, int width,
                    DeferredStore<T>& deferred) const {
        if (large && columns == width)
            deferred.defer(tile, rows, width, data + row * stride + column, stride);
        else
            (*this)(row, rows, column, columns, tile, width);
    }
};

}  // namespace handgrad
