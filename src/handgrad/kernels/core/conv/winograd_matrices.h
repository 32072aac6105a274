// The matrices of Winograd's minimal algorithms F(M × M, 3 × 3), and products with them.
//
// One axis of a tile: with N = M + 2 inputs d and 3 kernel values g, M outputs are
//     y = Aᵀ [(G g) ⊙ (Bᵀ d)],
// N products in place of 3 M. Both axes: y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A.
// Source: Lavin, Gray, Fast algorithms for convolutional neural networks (2016), sections 4.1, 4.3.
#pragma once

#include <array>

#include "core/simd/simd.h"

namespace handgrad {

template <int Rows, int Columns>
using ConstantMatrix = std::array<std::array<float, Columns>, Rows>;

template <std::size_t R, std::size_t C>
constexpr std::array<std::array<float, R>, C> transposed(
    const std::array<std::array<float, C>, R>& m) {
    std::array<std::array<float, R>, C> result{};
    for (std::size_t i = 0; i < R; i++)
        for (std::size_t j = 0; j < C; j++) result[j][i] = m[i][j];
    return result;
}

template <int M>
struct Winograd;

template <>
struct Winograd<2> {
    static constexpr int kInputs = 4;
    static constexpr ConstantMatrix<4, 4> kBt{
        {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
    static constexpr ConstantMatrix<4, 3> kG{
        {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}}};
    static constexpr ConstantMatrix<2, 4> kAt{{{1, 1, 1, 0}, {0, 1, -1, -1}}};
    static constexpr auto kGt = transposed(kG);
    static constexpr auto kA = transposed(kAt);
};

// The points of interpolation are 0, 1, -1, 1/2 and -2: with 2 in place of 1/2 errors are twice as
// large, and matrices have fewer fractions.
// Source: Barabasz et al., Error analysis and improving the accuracy of
// Winograd convolution for deep neural networks (2020), section 5.
template <>
struct Winograd<4> {
    static constexpr int kInputs = 6;
    static constexpr ConstantMatrix<6, 6> kBt{{{1, -1.5f, -2, 1.5f, 1, 0},
                                               {0, -1, 0.5f, 2.5f, 1, 0},
                                               {0, 1, -2.5f, 0.5f, 1, 0},
                                               {0, -2, -1, 2, 1, 0},
                                               {0, 0.5f, -1, -0.5f, 1, 0},
                                               {0, 1, -1.5f, -2, 1.5f, 1}}};
    static constexpr ConstantMatrix<6, 3> kG{{{1, 0, 0},
                                              {1.0f / 3, 1.0f / 3, 1.0f / 3},
                                              {-1.0f / 3, 1.0f / 3, -1.0f / 3},
                                              {-16.0f / 15, -8.0f / 15, -4.0f / 15},
                                              {1.0f / 15, -2.0f / 15, 4.0f / 15},
                                              {0, 0, 1}}};
    static constexpr ConstantMatrix<4, 6> kAt{{{1, 1, 1, 1, 1, 0},
                                               {0, 1, -1, 0.5f, -2, 0},
                                               {0, 1, 1, 0.25f, 4, 0},
                                               {0, 1, -1, 0.125f, -8, 1}}};
    static constexpr auto kGt = transposed(kG);
    static constexpr auto kA = transposed(kAt);
};

namespace detail {
// Σ matrix[Row][k] in[k] over k <= K, without the products by 0 and 1.
template <const auto& matrix, int Row, int K, class V>
inline V row_product(const V* in) {
    constexpr float c = matrix[Row][K];
    constexpr bool first = [] {
        for (int k = 0; k < K; k++)
            if (matrix[Row][k] != 0) return false;
        return true;
    }();
    if constexpr (first && (c != 0 || K == 0)) {
        if constexpr (c == 1) return in[K];
        return c * in[K];
    } else {
        const V before = row_product<matrix, Row, K - 1>(in);
        if constexpr (c == 0) return before;
        if constexpr (c == 1) return before + in[K];
        if constexpr (c == -1) return before - in[K];
        return before + c * in[K];
    }
}

template <const auto& matrix, class V, std::size_t... Row>
inline void column_product(const V* in, V* out, long step, std::index_sequence<Row...>) {
    constexpr int last = static_cast<int>(matrix[0].size()) - 1;
    ((out[static_cast<long>(Row) * step] = row_product<matrix, static_cast<int>(Row), last>(in)),
     ...);
}
}  // namespace detail

// out = matrix · in · matrixᵀ, for a square of `in` and of `out` in row-major order.
template <const auto& matrix, class V>
inline void multiply_both_sides(const V* in, V* out) {
    constexpr int rows = static_cast<int>(matrix.size());
    constexpr int columns = static_cast<int>(matrix[0].size());
    constexpr auto each_row = std::make_index_sequence<matrix.size()>{};
    // half[i][j] = Σ_k in[i][k] matrix[j][k], kept by columns, along which the second product runs.
    V half[rows * columns];
#pragma GCC unroll 8
    for (int i = 0; i < columns; i++)
        detail::column_product<matrix>(in + i * columns, half + i, columns, each_row);
#pragma GCC unroll 8
    for (int j = 0; j < rows; j++)
        detail::column_product<matrix>(half + j * columns, out + j, rows, each_row);
}

}  // namespace handgrad
