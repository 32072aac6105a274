// The tiled matrix product that carries everything: C = A B.
//
// Split A, B and C into tiles; then C_ij = Σ_t A_it B_tj (Transformer Layer notes, section 5).
// With A = [[1,2,3,4],[5,6,7,8],...], the rows of B 1, 2, 3, 4 repeated, and 2×2 tiles,
//     C_00 = A_00 B_00        + A_01 B_10
//          = [[5,5],[17,17]]  + [[25,25],[53,53]]  = [[30,30],[70,70]].
// The same identity is used at three sizes:
//   1. a block of C is one piece of work for one thread, which packs what it needs;
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
#pragma once

#include <algorithm>
#include <array>

#include "core/simd.h"
#include "core/threads.h"

namespace handgrad {

constexpr int kTileRows = kVectorRegisters == 32 ? 14 : 6;
constexpr int kTileVectors = 2;
template <class T>
constexpr int kTileColumns = kTileVectors * kLanes<T>;
constexpr long kDepth = 1024;
// What the panels of B that are packed together may take of the second-level cache.
constexpr long kGroupBytes = 512 << 10;
constexpr long kMostGroup = 64;

// The type of the sums of a product whose panels hold values of type T.
template <class T>
struct SumOf {
    using type = T;
};

// The longest step, counted in values of a panel.
template <class T>
constexpr long kMostDepth = kDepth;

// How far apart rows lie that are multiplied where they are, for sums of at most kRowDepth values:
// no power of two, which the cache would put on top of one another.
constexpr long kRowDepth = 256;
constexpr int kRowPitch = kRowDepth + 16;

// The sum is cut into equal steps of at most kDepth terms.
struct Steps {
    long count, size;
    explicit Steps(long depth, long most = kDepth, long multiple = 1)
        : count(std::max((depth + most - 1) / most, 1L)),
          size(((depth + count - 1) / count + multiple - 1) / multiple * multiple) {}
};

// tile (+)= Aᵀ-panel × B-panel: panel_a holds Rows values for each of `depth` terms, panel_b
// Vectors · kLanes; the tile is row-major and aligned. With a Pitch, A is not packed: its rows lie
// that far apart, which the compiler has to know, as no machine has registers for so many pointers.
template <class T, int Rows, int Vectors, int Pitch = 0>
void multiply_tile(long depth, const T* panel_a, const T* panel_b, T* tile, bool accumulate) {
    constexpr int width = Vectors * kLanes<T>;
    Vec<T> sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++)
            sums[i][v] = accumulate ? load(tile + i * width + v * kLanes<T>) : Vec<T>{};
    for (long p = 0; p < depth; p++, panel_a += Pitch == 0 ? Rows : 1, panel_b += width) {
        Vec<T> b[Vectors];
        for (int v = 0; v < Vectors; v++) b[v] = load(panel_b + v * kLanes<T>);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> a = splat(panel_a[Pitch == 0 ? i : i * Pitch]);
            for (int v = 0; v < Vectors; v++) sums[i][v] += a * b[v];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(tile + i * width + v * kLanes<T>, sums[i][v]);
}

// The register tile for this many rows and for a panel of this width.
template <int Pitch = 0, class T>
void multiply_tile(int rows, int width, long depth, const T* panel_a, const T* panel_b, T* tile,
                   bool accumulate) {
    using Product = void (*)(long, const T*, const T*, T*, bool);
    static constexpr auto products = []<int... I>(std::integer_sequence<int, I...>) {
        return std::array<std::array<Product, 2>, sizeof...(I)>{std::array<Product, 2>{
            multiply_tile<T, I + 1, 1, Pitch>, multiply_tile<T, I + 1, 2, Pitch>}...};
    }(std::make_integer_sequence<int, kTileRows>{});
    products[static_cast<std::size_t>(rows - 1)][width == kLanes<T> ? 0 : 1](
        depth, panel_a, panel_b, tile, accumulate);
}

// panel[p · width + l] for kLanes lanes l and `terms` <= kLanes terms p, from rows that lie along
// the terms: lane(l) points at the first term of lane l, null for a lane of zeros.
template <class T, class LanePointer>
void pack_transposed_square(T* panel, int width, int fits, int terms, const LanePointer& lane) {
    constexpr int n = kLanes<T>;
    Vec<T> rows[n];
#pragma GCC unroll 16
    for (int l = 0; l < n; l++) {
        const T* row = lane(l);
        rows[l] = row == nullptr ? Vec<T>{} : terms == n ? load(row) : load_some(row, terms);
    }
    transpose<T>(rows);
    if (terms == n && fits == n) {
#pragma GCC unroll 16
        for (int p = 0; p < n; p++) store(panel + p * width, rows[p]);
    } else {
        for (int p = 0; p < terms; p++) store_some(panel + p * width, rows[p], fits);
    }
}

// A matrix with any strides, packed: value (lane, term) is at data[lane · lane_stride + term ·
// term_stride].
template <class T>
struct StridedPack {
    const T* data;
    long lane_stride;
    long term_stride;

    bool lanes_adjacent() const { return lane_stride == 1; }

    // panel[p · width + l] = value (first + l, term + p) for l < lanes; zero for lanes <= l <
    // width.
    void operator()(T* panel, int width, long first, int lanes, long term, long depth) const {
        const T* source = data + first * lane_stride + term * term_stride;
        if (lane_stride == 1) {
            copy_rows(panel, width, source, lanes, depth);
        } else if (term_stride == 1) {
            copy_transposed(panel, width, source, lanes, depth);
        } else {
            for (long p = 0; p < depth; p++)
                for (int l = 0; l < width; l++)
                    panel[p * width + l] =
                        l < lanes ? source[l * lane_stride + p * term_stride] : T(0);
        }
    }

  private:
    void copy_rows(T* panel, int width, const T* source, int lanes, long depth) const {
        for (long p = 0; p < depth; p++, panel += width, source += term_stride) {
            for (int l = 0; l < width; l += kLanes<T>) {
                const int have = std::clamp(lanes - l, 0, kLanes<T>);
                const Vec<T> v = have == kLanes<T> ? load(source + l) : load_some(source + l, have);
                if (width - l >= kLanes<T>)
                    store(panel + l, v);
                else
                    store_some(panel + l, v, width - l);
            }
        }
    }

    void copy_transposed(T* panel, int width, const T* source, int lanes, long depth) const {
        constexpr int n = kLanes<T>;
        for (long p = 0; p < depth; p += n)
            for (int l = 0; l < width; l += n)
                pack_transposed_square(panel + p * width + l, width, std::min(n, width - l),
                                       static_cast<int>(std::min<long>(n, depth - p)), [&](int r) {
                                           return l + r < lanes ? source + (l + r) * lane_stride + p
                                                                : nullptr;
                                       });
    }
};

// Calls pack(first term, terms) over the terms of a step. Where lanes lie side by side in memory it
// is a few terms at a time for all panels, so that whole rows are read while they are at hand.
template <class PackChunk>
void for_each_chunk(bool lanes_adjacent, long terms, const PackChunk& pack) {
    const long chunk = lanes_adjacent ? 16 : std::max(terms, 1L);
    for (long p = 0; p < terms; p += chunk) pack(p, std::min(chunk, terms - p));
}

// One block of C on the calling thread: rows [row, row + rows), columns [column, column + columns).
// All of its A is packed; a few panels of B at a time are packed and meet every panel of A. T is
// what panels hold; its register tile is the multiply_tile for pointers to it.
template <class T, class PackA, class PackB, class Finish>
void multiply_block(long row, long rows, long column, long columns, long depth, const PackA& pack_a,
                    const PackB& pack_b, const Finish& finish) {
    constexpr int width = kTileColumns<T>;
    const long tiles = std::max((rows + kTileRows - 1) / kTileRows, 1L);
    const long height = (rows + tiles - 1) / tiles;
    const long panels = (columns + width - 1) / width;
    const auto [steps, step] = Steps(depth, kMostDepth<T>);
    const long size_a = height * step, size_b = width * step, size_c = height * width;
    const long bytes_b = size_b * static_cast<long>(sizeof(T));
    const long group = std::clamp(kGroupBytes / (bytes_b + 1), 1L, std::min(panels, kMostGroup));
    T* packed_a = scratch<T>(Scratch::kPanelA, tiles * steps * size_a);
    T* packed_b = scratch<T>(Scratch::kPanelB, group * size_b);
    // With one step a tile is finished at once; with several its sum waits for the next step.
    using Sum = typename SumOf<T>::type;
    Sum* sums = scratch<Sum>(Scratch::kSums, (steps == 1 ? 1 : group * tiles) * size_c);
    const auto terms_of = [&](long s) { return std::min(step, depth - s * step); };
    // Tiles differ by one row at most.
    const auto row_at = [&](long t) { return t * rows / tiles; };
    const auto rows_of = [&](long t) { return static_cast<int>(row_at(t + 1) - row_at(t)); };
    for (long s = 0; s < steps; s++)
        for_each_chunk(pack_a.lanes_adjacent(), terms_of(s), [&](long p, long terms) {
            for (long t = 0; t < tiles; t++)
                pack_a(packed_a + (t * steps + s) * size_a + p * rows_of(t), rows_of(t),
                       row + row_at(t), rows_of(t), s * step + p, terms);
        });

    struct Panel {
        long column;
        int lanes, width;
        T* packed;
    } panel[kMostGroup];
    for (long begin = 0; begin < panels; begin += group) {
        const long count = std::min(group, panels - begin);
        for (long q = 0; q < count; q++) {
            const long first = (begin + q) * width;
            const int lanes = static_cast<int>(std::min<long>(width, columns - first));
            panel[q] = {column + first, lanes, lanes <= kLanes<T> ? kLanes<T> : width,
                        packed_b + q * size_b};
        }
        for (long s = 0; s < steps; s++) {
            for_each_chunk(pack_b.lanes_adjacent(), terms_of(s), [&](long p, long terms) {
                for (long q = 0; q < count; q++)
                    pack_b(panel[q].packed + p * panel[q].width, panel[q].width, panel[q].column,
                           panel[q].lanes, s * step + p, terms);
            });
            for (long t = 0; t < tiles; t++)
                for (long q = 0; q < count; q++) {
                    Sum* sum = steps == 1 ? sums : sums + (t * group + q) * size_c;
                    multiply_tile(rows_of(t), panel[q].width, terms_of(s),
                                  packed_a + (t * steps + s) * size_a, panel[q].packed, sum, s > 0);
                    if (s == steps - 1)
                        finish(row + row_at(t), rows_of(t), panel[q].column, panel[q].lanes, sum,
                               panel[q].width);
                }
        }
    }
}

// How C is cut into blocks: enough of them to share out evenly, as square as they can be, since a
// block packs its rows of A and its columns of B for itself.
struct Blocks {
    long rows, columns;  // of one block

    Blocks(long all_rows, long all_columns, long depth, long row_unit, long column_unit)
        : rows(all_rows), columns(all_columns) {
        const double work = double(all_rows) * double(all_columns) * double(depth);
        constexpr double kWorthSharing = 2e5, kLarge = 3e8;
        const long threads = work < kWorthSharing ? 1 : get_threads();
        const long wanted = threads == 1 ? 1 : (work < kLarge ? 2 : 4) * threads;
        long down = 1, across = 1;
        while (down * across < wanted) {
            if (columns > 2 * column_unit && columns >= rows)
                across *= 2;
            else if (rows > 2 * row_unit)
                down *= 2;
            else if (columns > column_unit)
                across *= 2;
            else
                break;
            rows = (all_rows + down - 1) / down;
            columns = round_up((all_columns + across - 1) / across, column_unit);
        }
        // A's packed rows need not outgrow a few megabytes.
        constexpr long kMostValues = 1 << 20;
        rows = std::min(rows, std::max(kMostValues / std::max(depth, 1L), row_unit));
    }

  private:
    static long round_up(long n, long unit) { return (n + unit - 1) / unit * unit; }
};

// C = A B over all threads; `pack_a` and `pack_b` gather, `finish` receives each tile of C once.
template <class T, class PackA, class PackB, class Finish>
void multiply(long rows, long columns, long depth, const PackA& pack_a, const PackB& pack_b,
              const Finish& finish) {
    if (rows == 0 || columns == 0) return;
    const Blocks block(rows, columns, depth, kTileRows, kTileColumns<T>);
    const long down = (rows + block.rows - 1) / block.rows;
    const long across = (columns + block.columns - 1) / block.columns;
    parallel_for(down * across, 1, [&](long begin, long end) {
        for (long b = begin; b < end; b++) {
            const long row = b % down * block.rows, column = b / down * block.columns;
            multiply_block<T>(row, std::min(block.rows, rows - row), column,
                              std::min(block.columns, columns - column), depth, pack_a, pack_b,
                              finish);
        }
    });
}

// A finish that writes the tile to a row-major matrix.
template <class T>
struct WriteTile {
    T* data;
    long stride;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++) {
            T* target = data + (row + i) * stride + column;
            for (int c = 0; c < columns; c += kLanes<T>) {
                Vec<T> v = load(tile + i * width + c);
                const int have = std::min(kLanes<T>, columns - c);
                if (have == kLanes<T>) {
                    store(target + c, v);
                } else {
                    store_some(target + c, v, have);
                }
            }
        }
    }
};

}  // namespace handgrad
