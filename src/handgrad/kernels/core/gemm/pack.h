// Gathering an operand of the tiled product into micro-panels: for each k in turn, `width` lanes
// side by side.
#pragma once

#include <algorithm>

#include "core/simd/simd.h"

namespace handgrad {

// panel[p · width + l] for kLanes lanes l and p < k <= kLanes, from rows that lie along k: lane(l)
// points at the first value of lane l, null for a lane of zeros.
template <class T, class LanePointer>
void pack_transposed_square(T* panel, int width, int fits, int k, const LanePointer& lane) {
    constexpr int n = kLanes<T>;
    Vec<T> rows[n];
#pragma GCC unroll 16
    for (int l = 0; l < n; l++) {
        const T* row = lane(l);
        rows[l] = row == nullptr ? Vec<T>{} : k == n ? load(row) : masked_load(row, k);
    }
    transpose<T>(rows);
    if (k == n && fits == n) {
#pragma GCC unroll 16
        for (int p = 0; p < n; p++) store(panel + p * width, rows[p]);
    } else if (k == n && fits == width) {
        // Whole vectors as far as they stay inside the square: the next row overwrites the rest.
        for (int p = 0; p < n; p++)
            if (p * width + n <= n * width)
                store(panel + p * width, rows[p]);
            else
                masked_store(panel + p * width, rows[p], fits);
    } else {
        for (int p = 0; p < k; p++) masked_store(panel + p * width, rows[p], fits);
    }
}

// So many rows of an operand whose lanes are adjacent are packed at a time, for all panels.
constexpr long kPackedRows = 16;

// The values of a cache line, which is prefetched once.
template <class T>
constexpr long kLine = 64 / sizeof(T);

// Packs a matrix with any strides: value (lane, p) is at data[lane · lane_stride + p · k_stride].
template <class T>
struct StridedPack {
    const T* data;
    long lane_stride;
    long k_stride;

    bool lanes_adjacent() const { return lane_stride == 1; }
    const T* at(long lane, long p) const { return data + lane * lane_stride + p * k_stride; }

    // panel[p · width + l] = value (first + l, first_k + p) for l < lanes; zero for lanes <= l <
    // width.
    void operator()(T* panel, int width, long first, int lanes, long first_k, long k) const {
        const T* source = at(first, first_k);
        if (lane_stride == 1) {
            copy_rows(panel, width, source, lanes, k);
        } else if (k_stride == 1) {
            copy_transposed(panel, width, source, lanes, k);
        } else {
            for (long p = 0; p < k; p++)
                for (int l = 0; l < width; l++)
                    panel[p * width + l] =
                        l < lanes ? source[l * lane_stride + p * k_stride] : T(0);
        }
    }

  private:
    void copy_rows(T* panel, int width, const T* source, int lanes, long k) const {
        constexpr int n = kLanes<T>;
        if (lanes == width && width == 2 * n) return copy_vectors<2>(panel, width, source, k);
        if (lanes == width && width == n) return copy_vectors<1>(panel, width, source, k);
        long done = 0;
        if (lanes == width && width < n && k_stride >= n) {
            // Whole vectors as far as they stay in the panel, whose next row overwrites the rest,
            // and in the rows of the source.
            done = std::max(k + 1 - (n + width - 1) / width, 0L);
            copy_vectors<1>(panel, width, source, done);
        }
        for (int l = 0; l < width; l += n) {
            const int have = std::clamp(lanes - l, 0, n), fits = std::min(n, width - l);
            for (long p = done; p < k; p++) {
                const T* from = source + p * k_stride + l;
                T* to = panel + p * width + l;
                if (have == n && fits == n)
                    store(to, load(from));
                else
                    masked_store(to, masked_load(from, have), fits);
            }
        }
    }

    template <int kVectors>
    void copy_vectors(T* panel, int width, const T* source, long k) const {
        for (long p = 0; p < k; p++)
            for (int v = 0; v < kVectors; v++) {
                const T* from = source + p * k_stride + v * kLanes<T>;
                if (v * kLanes<T> % kLine<T> == 0)
                    __builtin_prefetch(from + kPackedRows * k_stride);
                store(panel + p * width + v * kLanes<T>, load(from));
            }
    }

    // So many short rows at once are more streams than a core foresees: each line of a square is
    // asked for some squares ahead, at the end of a row in the next panel's, and so are the lines
    // that will be written. Into the second-level cache, as rows a power of two apart would push
    // each other out of the first.
    void copy_transposed(T* panel, int width, const T* source, int lanes, long k) const {
        constexpr int n = kLanes<T>;
        constexpr long kAhead = 8 * n, kWrittenAhead = 4 * n;
        for (long p = 0; p < k; p += n) {
            for (long i = 0; i < width * n; i += kLine<T>)
                __builtin_prefetch(panel + (p + kWrittenAhead) * width + i, 1);
            const long ahead = p + kAhead < k ? kAhead : width * lane_stride + kAhead - k;
            for (int l = 0; l < width; l += n)
                pack_transposed_square(panel + p * width + l, width, std::min(n, width - l),
                                       static_cast<int>(std::min<long>(n, k - p)), [&](int r) {
                                           const T* row = source + (l + r) * lane_stride + p;
                                           if (p % kLine<T> == 0)
                                               __builtin_prefetch(row + ahead, 0, 2);
                                           return l + r < lanes ? row : nullptr;
                                       });
        }
    }
};

// Calls pack(first k, count) over the k of a KC block. If lanes are adjacent in memory it is called
// for a few k at a time for all panels, so that whole rows are read while they are in the cache.
template <class PackChunk>
void for_each_chunk(bool lanes_adjacent, long k, const PackChunk& pack) {
    const long chunk = lanes_adjacent ? kPackedRows : std::max(k, 1L);
    for (long p = 0; p < k; p += chunk) pack(p, std::min(chunk, k - p));
}

}  // namespace handgrad
