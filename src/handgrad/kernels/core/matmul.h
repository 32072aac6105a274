// The tiled matrix product that carries everything: C = A B.
//
// Split A, B and C into tiles; then C_ij = Σ_t A_it B_tj.
// With A = [[1,2,3,4],[5,6,7,8],...], the rows of B 1, 2, 3, 4 repeated, and 2×2 tiles,
//     C_00 = A_00 B_00        + A_01 B_10
//          = [[5,5],[17,17]]  + [[25,25],[53,53]]  = [[30,30],[70,70]].
// The same identity is used at three sizes:
//   1. a block of C is one piece of work for one thread;
//   2. its sum runs in steps of at most `kDepth` terms, so that the operands stay in the caches;
//   3. a register tile (14 × 2 vectors with 32 registers) multiplies one packed panel of A with one
//      of B, one term of the sum at a time.
//
// Around the register tile stand two replaceable pieces:
//   pack    gathers an operand into a panel: term by term, `width` values side by side. A
//   transpose,
//           the patches of a convolution or the rows of an embedding are just another gather.
//   finish  takes each finished tile: adds the bias, applies the activation, writes or scatters it.
//
// A panel need not hold numbers of the type of the sums: bf16.h has panels of pairs of bfloat16 and
// a register tile for them.
//
// Every value of C is summed in one fixed order, whatever the blocks and threads.
//
// Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5; Goto, van de
// Geijn, Anatomy of high-performance matrix multiplication (2008), for packing and blocking.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/memory.h"
#include "core/pack.h"
#include "core/register_tile.h"
#include "core/threads.h"

namespace handgrad {

constexpr long kDepth = 1024;
// What the panels of B that are packed or met together may take of the second-level cache.
constexpr long kGroupBytes = 512 << 10;

// The type of the sums of a product whose panels hold values of type T.
template <class T>
struct SumOf {
    using type = T;
};

// The longest step, counted in values of a panel.
template <class T>
constexpr long kMostDepth = kDepth;

// The sum is cut into equal steps of at most kDepth terms.
struct Steps {
    long count, size;
    explicit Steps(long depth, long most = kDepth, long multiple = 1)
        : count(std::max((depth + most - 1) / most, 1L)),
          size(((depth + count - 1) / count + multiple - 1) / multiple * multiple) {}
};

// Operands are packed in strips of lanes. Rows of A: tiles that differ by one row at most.
struct RowTiles {
    long rows, count;
    explicit RowTiles(long all) : rows(all), count((all + kTileRows - 1) / kTileRows) {}
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

// Columns of B: panels as wide as the register tile; the last may be narrower.
template <class T>
struct ColumnPanels {
    long columns, count;
    explicit ColumnPanels(long all)
        : columns(all), count((all + kTileColumns<T> - 1) / kTileColumns<T>) {}
    long at(long q) const { return q * kTileColumns<T>; }
    int lanes(long q) const {
        return static_cast<int>(std::min<long>(kTileColumns<T>, columns - at(q)));
    }
    int width(long q) const { return lanes(q) <= kLanes<T> ? kLanes<T> : kTileColumns<T>; }
};

struct Range {
    long begin, end;
    long count() const { return end - begin; }
};

// How a product is cut.
template <class T>
struct Cut {
    RowTiles tiles;
    ColumnPanels<T> panels;
    long depth;
    Steps steps;
    long size_a, size_b;  // of a panel

    Cut(long rows, long columns, long terms)
        : tiles(rows),
          panels(columns),
          depth(terms),
          steps(terms, kMostDepth<T>),
          size_a(std::min<long>(rows, kTileRows) * steps.size),
          size_b(kTileColumns<T> * steps.size) {}

    long terms(long s) const { return std::min(steps.size, depth - s * steps.size); }

    // How many of these panels of B are taken together: groups are of one size, as near as can be.
    long group_of(long some) const {
        const long bytes = size_b * static_cast<long>(sizeof(T));
        const long most = std::max(kGroupBytes / (bytes + 1), 1L);
        const long groups = std::max((some + most - 1) / most, 1L);
        return std::max((some + groups - 1) / groups, 1L);
    }
};

// Packs `terms` terms from term p of step s on, for each of these strips into the panel of that
// step: those of `steps` lie `size` values apart.
template <class T, class Strips, class Pack>
void pack_terms(const Cut<T>& cut, const Strips& strips, Range some, Range steps, long s, long p,
                long terms, const Pack& pack, T* packed, long size) {
    for (long i = some.begin; i < some.end; i++) {
        const long place = (i - some.begin) * steps.count() + s - steps.begin;
        pack(packed + place * size + p * strips.width(i), strips.width(i), strips.at(i),
             strips.lanes(i), s * cut.steps.size + p, terms);
    }
}

// Packs these strips of an operand on the calling thread.
template <class T, class Strips, class Pack>
void pack_strips(const Cut<T>& cut, const Strips& strips, Range some, Range steps, const Pack& pack,
                 T* packed, long size) {
    for (long s = steps.begin; s < steps.end; s++)
        for_each_chunk(pack.lanes_adjacent(), cut.terms(s), [&](long p, long terms) {
            breathe();
            pack_terms(cut, strips, some, steps, s, p, terms, pack, packed, size);
        });
}

// What blocks share: operands that are packed already, and sums that wait for later steps, those
// of tile t and panel q at t · panels + q. Each may be null.
template <class T>
struct Shared {
    const T* a;
    const T* b;
    typename SumOf<T>::type* sums;
};

// A left operand whose terms lie side by side is read by the register tile where it is: to pack it
// takes a tenth as long as a product with 384 columns. Pairs are rounded first, and so are packed.
template <class T, class PackA>
constexpr bool kMayLieInPlace = std::is_same_v<PackA, StridedPack<T>>;
template <class T, class PackA>
bool lies_in_place(const PackA& pack_a) {
    if constexpr (kMayLieInPlace<T, PackA>) return pack_a.term_stride == 1;
    return false;
}

// Whether a finish can leave the writing of a tile to the product of the next one, which the
// register tile of pairs does not do.
template <class Epilogue, class T>
constexpr bool kDefersStore =
    std::is_floating_point_v<T> &&
    std::is_invocable_v<const Epilogue&, long, int, long, int, T*, int, DeferredStore<T>&>;

// These steps of one block of C, on the calling thread. What is not packed already, and has to be,
// is packed here: all of the block's A; of B a few panels at a time, which then meet every tile of
// A. T is what panels hold; its register tile is the multiply_tile for pointers to it.
template <class T, class PackA, class PackB, class Epilogue>
void multiply_block(const Cut<T>& cut, Range tiles, Range panels, Range steps, const PackA& pack_a,
                    const PackB& pack_b, const Epilogue& epilogue, const Shared<T>& shared) {
    const long strip_a = steps.count() * cut.size_a;
    const long strip_b = (shared.b == nullptr ? 1 : steps.count()) * cut.size_b;
    const long group = cut.group_of(panels.count());
    T* own_b = shared.b == nullptr ? thread_workspace<T>(WorkspaceSlot::kPanelB, group * cut.size_b)
                                   : nullptr;
    const bool in_place = lies_in_place<T>(pack_a);
    const T* panels_a = shared.a;
    if (shared.a != nullptr) {
        panels_a += tiles.begin * strip_a;
    } else if (!in_place) {
        T* own_a = thread_workspace<T>(WorkspaceSlot::kPanelA, tiles.count() * strip_a);
        pack_strips(cut, cut.tiles, tiles, steps, pack_a, own_a, cut.size_a);
        panels_a = own_a;
    }
    // With one step a tile is finished at once, and the next one has another place, while this one
    // may still have to be written; with several its sum waits for the next step.
    constexpr long size_c = kTileRows * kTileColumns<T>;
    const bool once = cut.steps.count == 1;
    using Sum = typename SumOf<T>::type;
    Sum* own_sums = shared.sums != nullptr
                        ? nullptr
                        : thread_workspace<Sum>(WorkspaceSlot::kSums,
                                                (once ? 2 : tiles.count() * group) * size_c);
    DeferredStore<Sum> deferred;
    int turn = 0;
    for (long first = panels.begin; first < panels.end; first += group) {
        const Range some{first, std::min(first + group, panels.end)};
        for (long s = steps.begin; s < steps.end; s++) {
            if (shared.b == nullptr)
                pack_strips(cut, cut.panels, some, {s, s + 1}, pack_b, own_b, cut.size_b);
            const T* panels_b = shared.b == nullptr
                                    ? own_b
                                    : shared.b + first * strip_b + (s - steps.begin) * cut.size_b;
            for (long t = tiles.begin; t < tiles.end; t++) {
                breathe();
                for (long q = some.begin; q < some.end; q++) {
                    const long own = once ? turn ^= 1 : (t - tiles.begin) * group + q - first;
                    Sum* sum = shared.sums != nullptr
                                   ? shared.sums + (t * cut.panels.count + q) * size_c
                                   : own_sums + own * size_c;
                    const int rows = cut.tiles.rows_of(t), width = cut.panels.width(q);
                    const T* panel_b = panels_b + (q - first) * strip_b;
                    const long terms = cut.terms(s);
                    if constexpr (kMayLieInPlace<T, PackA>) {
                        if (in_place)
                            multiply_tile<kAnyPitch>(
                                rows, width, terms, pack_a.at(cut.tiles.at(t), s * cut.steps.size),
                                panel_b, sum, s > 0, pack_a.lane_stride,
                                q == panels.begin ? rows * pack_a.lane_stride : 0, &deferred);
                    }
                    if (!in_place) {
                        const T* panel_a =
                            panels_a + (t - tiles.begin) * strip_a + (s - steps.begin) * cut.size_a;
                        if constexpr (std::is_floating_point_v<T>)
                            multiply_tile(rows, width, terms, panel_a, panel_b, sum, s > 0, 0, 0,
                                          &deferred);
                        else
                            multiply_tile(rows, width, terms, panel_a, panel_b, sum, s > 0);
                    }
                    if (s < cut.steps.count - 1) continue;
                    const long row = cut.tiles.at(t), column = cut.panels.at(q);
                    if constexpr (kDefersStore<Epilogue, T>)
                        epilogue(row, rows, column, cut.panels.lanes(q), sum, width, deferred);
                    else
                        epilogue(row, rows, column, cut.panels.lanes(q), sum, width);
                }
            }
        }
        deferred.store_all();
    }
}

// All of C on the calling thread.
template <class T, class PackA, class PackB, class Epilogue>
void multiply_here(long rows, long columns, long depth, const PackA& pack_a, const PackB& pack_b,
                   const Epilogue& epilogue) {
    const Cut<T> cut(rows, columns, depth);
    multiply_block(cut, {0, cut.tiles.count}, {0, cut.panels.count}, {0, cut.steps.count}, pack_a,
                   pack_b, epilogue, {nullptr, nullptr, nullptr});
}

// How C is cut into blocks, enough of them to share out evenly. A large C is cut along its longer
// side: a thread packs its piece of that operand where it is going to use it, and the other operand
// is packed once for all blocks. Where A lies in place it is cut along its columns, and nobody
// waits for anybody. A small C is cut as square as it can be, and every block packs what it needs.
// Of a very long sum a few steps are taken at a time, so that no operand is packed as a whole.
template <class T>
struct Blocks {
    long steps;  // of one block
    long down = 1, across = 1;
    bool share_a = false, share_b = false;

    Blocks(const Cut<T>& cut, bool a_in_place)
        : steps(std::min(cut.steps.count, kMostSteps)),
          tiles_(cut.tiles.count),
          panels_(cut.panels.count) {
        long rows = cut.tiles.rows, columns = cut.panels.columns;
        const double work = double(rows) * double(columns) * double(cut.depth);
        const bool large = work >= kWorthPackingOnce, wide = columns >= rows;
        const long threads = work < kWorthSharing ? 1 : get_threads();
        const long wanted = threads == 1 && !large ? 1 : 2 * threads;
        const long narrowest = (large ? 1 : 2) * kTileColumns<T>;
        while (down * across < wanted) {
            const bool by_columns =
                large ? wide || (a_in_place && columns >= kWideEnough) : columns >= rows;
            if (columns > narrowest && by_columns)
                across *= 2;
            else if (rows > 2 * kTileRows)
                down *= 2;
            else if (columns > kTileColumns<T>)
                across *= 2;
            else
                break;
            rows = (cut.tiles.rows + down - 1) / down;
            columns = (cut.panels.columns + across - 1) / across;
        }
        const bool all_want_a = large && across > 1;
        share_a = all_want_a && !a_in_place;
        const long most = std::max(kMostValues / (steps * cut.size_a + 1), 1L);
        while (!all_want_a && tiles_ > down * most) down *= 2;
        down = std::min(down, tiles_);
        across = std::min(across, panels_);
        share_b = large && down > 1;
    }

    Range tiles(long block) const { return part(tiles_, block % down, down); }
    Range panels(long block) const { return part(panels_, block / down, across); }

  private:
    static constexpr double kWorthSharing = 2e5, kWorthPackingOnce = 5e7;
    static constexpr long kMostSteps = 4;
    // What a block packs of A should find room in the second-level cache.
    static constexpr long kMostValues = 1 << 18;
    // Columns that are worth reading an A that is not packed for each half of them.
    static constexpr long kWideEnough = 6 * kTileColumns<T>;
    long tiles_, panels_;

    static Range part(long all, long i, long parts) {
        return {i * all / parts, (i + 1) * all / parts};
    }
};

// Packs all of an operand for these steps, on all threads: where lanes lie side by side a thread
// takes whole rows of memory, otherwise strips.
template <class T, class Strips, class Pack>
void pack_for_all(const Cut<T>& cut, const Strips& strips, Range steps, const Pack& pack, T* packed,
                  long size) {
    const Range all{0, strips.count};
    const bool by_rows = pack.lanes_adjacent();
    constexpr long kRows = 32;
    const long pieces = by_rows ? (cut.steps.size + kRows - 1) / kRows : strips.count;
    parallel_for(steps.count() * pieces, 1, [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long s = steps.begin + i % steps.count(), piece = i / steps.count();
            if (by_rows) {
                const long p = piece * kRows;
                const long terms = std::min(kRows, cut.terms(s) - p);
                if (terms > 0) pack_terms(cut, strips, all, steps, s, p, terms, pack, packed, size);
            } else {
                pack_terms(cut, strips, {piece, piece + 1}, steps, s, 0, cut.terms(s), pack,
                           packed + piece * steps.count() * size, size);
            }
        }
    });
}

// C = A B over all threads; `pack_a` and `pack_b` gather, `finish` receives each tile of C once.
template <class T, class PackA, class PackB, class Epilogue>
void multiply(long rows, long columns, long depth, const PackA& pack_a, const PackB& pack_b,
              const Epilogue& epilogue) {
    if (rows == 0 || columns == 0) return;
    const Cut<T> cut(rows, columns, depth);
    const Blocks<T> blocks(cut, lies_in_place<T>(pack_a));
    const auto run = [&](Range steps, const Shared<T>& shared) {
        parallel_for(blocks.down * blocks.across, 1, [&](long begin, long end) {
            for (long b = begin; b < end; b++) {
                multiply_block(cut, blocks.tiles(b), blocks.panels(b), steps, pack_a, pack_b,
                               epilogue, shared);
            }
        });
    };
    const bool waits = blocks.steps < cut.steps.count;
    if (!blocks.share_a && !blocks.share_b && !waits)
        return run({0, cut.steps.count}, {nullptr, nullptr, nullptr});
    using Sum = typename SumOf<T>::type;
    const Workspace<T> a(blocks.share_a ? cut.tiles.count * blocks.steps * cut.size_a : 0);
    const Workspace<T> b(blocks.share_b ? cut.panels.count * blocks.steps * cut.size_b : 0);
    const Workspace<Sum> sums(
        waits ? cut.tiles.count * cut.panels.count * kTileRows * kTileColumns<T> : 0);
    for (long s = 0; s < cut.steps.count; s += blocks.steps) {
        const Range steps{s, std::min(s + blocks.steps, cut.steps.count)};
        if (blocks.share_a) pack_for_all(cut, cut.tiles, steps, pack_a, a.data(), cut.size_a);
        if (blocks.share_b) pack_for_all(cut, cut.panels, steps, pack_b, b.data(), cut.size_b);
        run(steps, {blocks.share_a ? a.data() : nullptr, blocks.share_b ? b.data() : nullptr,
                    waits ? sums.data() : nullptr});
    }
}

// Whether a result of so many values outgrows the second-level cache, and is better streamed: what
// it displaces there is worth as much as itself.
template <class T>
constexpr bool outgrows_caches(long count) {
    return count * static_cast<long>(sizeof(T)) >= 2 << 20;
}

// The first `have` lanes of a result; a large one's whole vectors are streamed.
template <class T>
void put(T* target, Vec<T> v, int have, bool large) {
    if (have < kLanes<T>)
        masked_store(target, v, have);
    else if (large)
        stream(target, v);
    else
        store(target, v);
}

// A finish that writes the tile to a row-major matrix, a large one later, if there is a writer.
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
