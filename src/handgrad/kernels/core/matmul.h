// The tiled matrix product that carries everything: C = A B.
//
// Split A, B and C into tiles; then C_ij = Σ_t A_it B_tj (Transformer Layer notes, section 5).
// With A = [[1,2,3,4],[5,6,7,8],...], the rows of B 1, 2, 3, 4 repeated, and 2×2 tiles,
//     C_00 = A_00 B_00        + A_01 B_10
//          = [[5,5],[17,17]]  + [[25,25],[53,53]]  = [[30,30],[70,70]].
// The same identity is used at three sizes:
//   1. a block of C (some 168 × 256 values) is one piece of work for one thread;
//   2. its sum runs over blocks of `kDepth` terms, so that the operands stay in the caches;
//   3. a register tile (14 × 2 vectors with 32 registers) multiplies one packed panel of A with one
//      of B, one term of the sum at a time.
//
// Around the register tile stand two replaceable pieces:
//   pack    gathers an operand into a panel: term by term, `width` values side by side. A transpose,
//           the patches of a convolution or the rows of an embedding are just another gather.
//   finish  takes each finished tile: adds the bias, applies the activation, writes or scatters it.
//
// A thread packs what its block needs and waits for nobody. Every value of C is summed in one fixed
// order, whatever the blocks and threads.
#pragma once

#include <algorithm>

#include "core/simd.h"
#include "core/threads.h"

namespace handgrad {

constexpr int kTileRows = kVectorRegisters == 32 ? 14 : 6;
constexpr int kTileVectors = 2;
template <class T>
constexpr int kTileColumns = kTileVectors * kLanes<T>;
constexpr long kDepth = 384;
constexpr long kBlockRows = 12 * kTileRows;
constexpr long kBlockColumns = 256;

// tile (+)= Aᵀ-panel × B-panel: panel_a holds Rows values for each of `depth` terms, panel_b
// Vectors · kLanes values; the tile is row-major and aligned.
template <class T, int Rows, int Vectors>
void multiply_tile(long depth, const T* panel_a, const T* panel_b, T* tile, bool accumulate) {
    constexpr int width = Vectors * kLanes<T>;
    Vec<T> sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++)
            sums[i][v] = accumulate ? load(tile + i * width + v * kLanes<T>) : Vec<T>{};
    for (long p = 0; p < depth; p++) {
        Vec<T> b[Vectors];
        for (int v = 0; v < Vectors; v++) b[v] = load(panel_b + v * kLanes<T>);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> a = splat(panel_a[i]);
            for (int v = 0; v < Vectors; v++) sums[i][v] += a * b[v];
        }
        panel_a += Rows;
        panel_b += width;
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(tile + i * width + v * kLanes<T>, sums[i][v]);
}

template <class T>
using TileProduct = void (*)(long, const T*, const T*, T*, bool);

namespace detail {
template <class T, int Vectors, int... I>
constexpr TileProduct<T> pick_tile(int rows, std::integer_sequence<int, I...>) {
    constexpr TileProduct<T> products[] = {multiply_tile<T, I + 1, Vectors>...};
    return products[rows - 1];
}
}  // namespace detail

// The register tile for this many rows and for a panel of this width.
template <class T>
TileProduct<T> tile_product(int rows, int width) {
    constexpr auto heights = std::make_integer_sequence<int, kTileRows>{};
    return width == kLanes<T> ? detail::pick_tile<T, 1>(rows, heights)
                              : detail::pick_tile<T, 2>(rows, heights);
}

// panel[p · width + l] for kLanes lanes l and `terms` <= kLanes terms p, from rows that lie along the
// terms: lane(l) points at the first term of lane l, null for a lane of zeros.
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

// A matrix with any strides, packed: value (lane, term) is at data[lane · lane_stride + term · term_stride].
template <class T>
struct StridedPack {
    const T* data;
    long lane_stride;
    long term_stride;

    // panel[p · width + l] = value (first + l, term + p) for l < lanes; zero for lanes <= l < width.
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
                pack_transposed_square(
                    panel + p * width + l, width, std::min(n, width - l),
                    static_cast<int>(std::min<long>(n, depth - p)), [&](int r) {
                        return l + r < lanes ? source + (l + r) * lane_stride + p : nullptr;
                    });
    }
};

// One block of C on the calling thread: rows [row, row + rows), columns [column, column + columns).
template <class T, class PackA, class PackB, class Finish>
void multiply_block(long row, long rows, long column, long columns, long depth, const PackA& pack_a,
                    const PackB& pack_b, const Finish& finish) {
    const long tiles = (rows + kTileRows - 1) / kTileRows;
    const int height = static_cast<int>((rows + tiles - 1) / tiles);
    constexpr int width = kTileColumns<T>;
    const long panels = (columns + width - 1) / width;
    const long steps = std::max((depth + kDepth - 1) / kDepth, 1L);
    const long step = (depth + steps - 1) / steps;
    T* panel_a = scratch<T>(Scratch::kPanelA, tiles * height * step + kLanes<T>);
    T* panel_b = scratch<T>(Scratch::kPanelB, width * step);
    // With one step a tile is finished at once; with several its sum waits for the next step.
    T* sums = scratch<T>(Scratch::kSums, (steps == 1 ? 1 : panels * tiles) * height * width);
    for (long s = 0; s < steps; s++) {
        const long term = s * step;
        const long terms = std::min(step, depth - term);
        const bool last = s == steps - 1;
        for (long t = 0; t < tiles; t++) {
            const int lanes = static_cast<int>(std::min<long>(height, rows - t * height));
            if (lanes > 0)
                pack_a(panel_a + t * height * step, lanes, row + t * height, lanes, term, terms);
        }
        for (long q = 0; q < panels; q++) {
            const int lanes = static_cast<int>(std::min<long>(width, columns - q * width));
            const int used = lanes <= kLanes<T> ? kLanes<T> : width;
            pack_b(panel_b, used, column + q * width, lanes, term, terms);
            for (long t = 0; t < tiles; t++) {
                const int high = static_cast<int>(std::min<long>(height, rows - t * height));
                if (high <= 0) break;
                T* tile = steps == 1 ? sums : sums + (q * tiles + t) * height * width;
                tile_product<T>(high, used)(terms, panel_a + t * height * step, panel_b, tile, s > 0);
                if (last) finish(row + t * height, high, column + q * width, lanes, tile, used);
            }
        }
    }
}

// C = A B over all threads; `pack_a` and `pack_b` gather, `finish` receives each tile of C once.
template <class T, class PackA, class PackB, class Finish>
void multiply(long rows, long columns, long depth, const PackA& pack_a, const PackB& pack_b,
              const Finish& finish) {
    if (rows == 0 || columns == 0) return;
    // Small products stay on the caller; larger ones become enough blocks to share out evenly.
    constexpr double kWorthSharing = 4e5;
    const bool share = double(rows) * double(columns) * double(depth) > kWorthSharing;
    constexpr long width = kTileColumns<T>;
    long row_blocks = (rows + kBlockRows - 1) / kBlockRows;
    long column_blocks = (columns + kBlockColumns - 1) / kBlockColumns;
    if (share) {
        while (row_blocks * column_blocks < 8) {
            const long high = (rows + row_blocks - 1) / row_blocks;
            const long wide = (columns + column_blocks - 1) / column_blocks;
            if (wide > 2 * width)
                column_blocks *= 2;
            else if (high > 2 * kTileRows)
                row_blocks *= 2;
            else
                break;
        }
    }
    const long high = (rows + row_blocks - 1) / row_blocks;
    const long wide = ((columns + column_blocks - 1) / column_blocks + width - 1) / width * width;
    row_blocks = (rows + high - 1) / high;
    column_blocks = (columns + wide - 1) / wide;
    const long blocks = row_blocks * column_blocks;
    parallel_for(blocks, share ? 1 : blocks, [&](long begin, long end) {
        for (long block = begin; block < end; block++) {
            const long row = block % row_blocks * high;
            const long column = block / row_blocks * wide;
            multiply_block<T>(row, std::min(high, rows - row), column,
                              std::min(wide, columns - column), depth, pack_a, pack_b, finish);
        }
    });
}

// A finish that writes (or adds) the tile to a row-major matrix.
template <class T>
struct WriteTile {
    T* data;
    long stride;
    bool add = false;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++) {
            T* target = data + (row + i) * stride + column;
            for (int c = 0; c < columns; c += kLanes<T>) {
                Vec<T> v = load(tile + i * width + c);
                const int have = std::min(kLanes<T>, columns - c);
                if (have == kLanes<T>) {
                    if (add) v += load(target + c);
                    store(target + c, v);
                } else {
                    if (add) v += load_some(target + c, have);
                    store_some(target + c, v, have);
                }
            }
        }
    }
};

}  // namespace handgrad
