// Rows of queries on their way in, and columns of sums on their way out.
#pragma once

#include "core/attention/call.h"

namespace handgrad::attention {

// A block's rows times `factor`, with zeros up to `pitch` and up to kWide rows.
template <class T>
void load_queries(T* rows, long pitch, const T* source, long stride, long count, long width,
                  T factor) {
    constexpr int n = kLanes<T>;
    for (long i = 0; i < count; i++, rows += pitch, source += stride) {
        long k = 0;
        for (; k + n <= width; k += n) store(rows + k, factor * load(source + k));
        if (k < width) store(rows + k, factor * masked_load(source + k, width - k));
        for (k = round_up(width, n); k < pitch; k++) rows[k] = T(0);
    }
    std::fill_n(rows, (kWide<T> - count) * pitch, T(0));
}

// Row i of the target is lane i of (width × kWide) sums times its lane of factors(first lane).
template <class T, class Factors>
void write_columns(T* target, long stride, const T* sums, long count, long width,
                   const Factors& factors) {
    constexpr int n = kLanes<T>;
    for (long at = 0; at < count; at += n) {
        const Vec<T> factor = factors(at);
        for (long f = 0; f < width; f += n) {
            Vec<T> square[n];
            const long fits = std::min<long>(n, width - f);
            for (int j = 0; j < n; j++)
                square[j] =
                    j < fits ? Vec<T>(load(sums + (f + j) * kWide<T> + at) * factor) : Vec<T>{};
            transpose<T>(square);
            for (int j = 0; j < std::min<long>(n, count - at); j++) {
                T* row = target + (at + j) * stride + f;
                if (fits == n)
                    store(row, square[j]);
                else
                    masked_store(row, square[j], fits);
            }
        }
    }
}

// Rows of sums to where they go.
template <class T>
void write_rows(T* target, long stride, const T* sums, long pitch, long rows, long count) {
    for (long i = 0; i < rows; i++) copy_values(target + i * stride, sums + i * pitch, count);
}

}  // namespace handgrad::attention
