// The micro-kernel on operands that lie in memory unpacked.
//
// A left operand is read one value at a time: any layout serves whose strides are known, one of
// them at compile time. A right operand is read a vector at a time: rows of whole vectors serve.
#pragma once

#include "core/gemm/matmul.h"

namespace handgrad {

template <class T, int kRowStep>
struct StridedLoop {
    template <int Rows, int Vectors>
    static void run(long k, const T* a, long a_step, const T* b, long b_step, T* c, long pitch,
                    bool accumulate) {
        RegisterTile<T, Rows, Vectors> tile;
        tile.begin(c, pitch, accumulate);
        for (long p = 0; p < k; p++, a += a_step, b += b_step)
            tile.add([&](int i) { return a[i * kRowStep]; }, b);
        tile.end(c, pitch);
    }
};

// c (+)= A B for so many rows and vectors of columns: A(i, p) = a[i · kRowStep + p · a_step],
// B(p, ·) starts at b[p · b_step], and rows of C are `pitch` apart.
template <class T, int kRowStep>
void strided_micro_kernel(int rows, int vectors, long k, const T* a, long a_step, const T* b,
                          long b_step, T* c, long pitch, bool accumulate) {
    sized<StridedLoop<T, kRowStep>>(rows, vectors)(k, a, a_step, b, b_step, c, pitch, accumulate);
}

// C += A B for any number of rows; `columns` is a multiple of the lanes.
template <class T, int kRowStep>
void add_product(long rows, long columns, long k, const T* a, long a_step, const T* b, long b_step,
                 T* c, long pitch) {
    const RowTiles tiles(rows);
    for (long column = 0; column < columns; column += kNR<T>) {
        const int vectors = columns - column > kLanes<T> ? 2 : 1;
        for (long t = 0; t < tiles.count; t++)
            strided_micro_kernel<T, kRowStep>(
                tiles.rows_of(t), vectors, k, a + tiles.at(t) * kRowStep, a_step, b + column,
                b_step, c + tiles.at(t) * pitch + column, pitch, true);
    }
}

}  // namespace handgrad
