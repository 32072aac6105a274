// The micro-kernel of core/matmul.h on operands that lie in memory unpacked.
//
// A left operand is read one value at a time: any layout serves whose strides are known, one of
// them at compile time. A right operand is read a vector at a time: rows of whole vectors serve.
#pragma once

#include <array>

#include "core/matmul.h"

namespace handgrad {

// c (+)= A B for Rows rows and Vectors vectors of columns: A(i, p) = a[i · kRowStep + p · a_step],
// B(p, ·) starts at b[p · b_step], and rows of C are `pitch` apart.
template <class T, int kRowStep, int Rows, int Vectors>
void strided_micro_kernel(long k, const T* a, long a_step, const T* b, long b_step, T* c,
                          long pitch, bool accumulate) {
    constexpr int n = kLanes<T>;
    Vec<T> sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++)
            sums[i][v] = accumulate ? load(c + i * pitch + v * n) : Vec<T>{};
    for (long p = 0; p < k; p++, a += a_step, b += b_step) {
        Vec<T> right[Vectors];
        for (int v = 0; v < Vectors; v++) right[v] = load(b + v * n);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> left = splat(a[i * kRowStep]);
            for (int v = 0; v < Vectors; v++) sums[i][v] += left * right[v];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(c + i * pitch + v * n, sums[i][v]);
}

// The micro-kernel for this many rows and vectors of columns.
template <class T, int kRowStep>
void strided_micro_kernel(int rows, int vectors, long k, const T* a, long a_step, const T* b,
                          long b_step, T* c, long pitch, bool accumulate) {
    using Product = void (*)(long, const T*, long, const T*, long, T*, long, bool);
    static constexpr auto products = []<int... I>(std::integer_sequence<int, I...>) {
        return std::array<std::array<Product, 2>, sizeof...(I)>{
            std::array<Product, 2>{strided_micro_kernel<T, kRowStep, I + 1, 1>,
                                   strided_micro_kernel<T, kRowStep, I + 1, 2>}...};
    }(std::make_integer_sequence<int, kMR>{});
    products[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>(vectors - 1)](
        k, a, a_step, b, b_step, c, pitch, accumulate);
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
