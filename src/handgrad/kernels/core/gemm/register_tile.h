// The tile of sums that a micro-kernel holds in registers, and the multiply-add that every tiled
// product is made of. Micro-kernels differ in where the values of A lie, and in nothing else:
// packed or in rows (micro_kernel.h), at any strides (strided_micro_kernel.h), in a padded image
// (convolution_micro_kernels.h).
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/simd/simd.h"

namespace handgrad {

// The most rows and columns of a tile.
constexpr int kMR = kVectorRegisters == 32 ? 14 : 6;
constexpr int kNRVectors = 2;
template <class T>
constexpr int kNR = kNRVectors * kLanes<T>;

// Two bfloat16 values, that of the lower k in the lower half.
enum class Bf16x2 : std::uint32_t {};

// The type of the sums of products of such elements.
template <class Element>
using SumOf = std::conditional_t<std::is_floating_point_v<Element>, Element, float>;

// An element of A in every lane. Those of Bf16x2 are carried as the bits of a float.
template <class Element>
[[gnu::always_inline]] inline Vec<SumOf<Element>> broadcast(Element value) {
    if constexpr (std::is_floating_point_v<Element>)
        return splat(value);
    else
        return (Vec<float>)splat(static_cast<std::uint32_t>(value));
}

// The elements of B of all lanes.
template <class Element>
[[gnu::always_inline]] inline Vec<SumOf<Element>> load_lanes(const Element* lanes) {
    Vec<SumOf<Element>> v;
    std::memcpy(&v, lanes, sizeof v);
    return v;
}

// sum + a b, for Bf16x2 the products of both halves. One instruction, in assembly: a function for
// another instruction set cannot be made part of what calls it.
template <class Element>
[[gnu::always_inline]] inline Vec<SumOf<Element>> multiply_add(Vec<SumOf<Element>> sum,
                                                               Vec<SumOf<Element>> a,
                                                               Vec<SumOf<Element>> b) {
    if constexpr (std::is_floating_point_v<Element>) return fused(sum, a, b);
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<Element, Bf16x2>) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
#endif
}

// C (+)= A B for Rows rows and Vectors vectors of columns; rows of C are `pitch` apart.
template <class Element, int Rows, int Vectors>
struct RegisterTile {
    using T = SumOf<Element>;
    static constexpr int kWidth = Vectors * kLanes<T>;

    Vec<T> sums[Rows][Vectors];

    [[gnu::always_inline]] void begin(const T* c, long pitch, bool accumulate) {
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++)
            for (int v = 0; v < Vectors; v++)
                sums[i][v] = accumulate ? load(c + i * pitch + v * kLanes<T>) : Vec<T>{};
    }
    // One k: value(i) is the element of A in row i, and B has `lanes`.
    template <class Value>
    [[gnu::always_inline]] void add(const Value& value, const Element* lanes) {
        Vec<T> b[Vectors];
        for (int v = 0; v < Vectors; v++) b[v] = load_lanes(lanes + v * kLanes<T>);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> a = broadcast<Element>(value(i));
            for (int v = 0; v < Vectors; v++)
                sums[i][v] = multiply_add<Element>(sums[i][v], a, b[v]);
        }
    }
    [[gnu::always_inline]] void end(T* c, long pitch) const {
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++)
            for (int v = 0; v < Vectors; v++) store(c + i * pitch + v * kLanes<T>, sums[i][v]);
    }
};

// Loop::run<Rows, Vectors> for sizes that are known at run time.
template <class Loop>
auto sized(int rows, int vectors) {
    using Run = decltype(&Loop::template run<1, 1>);
    static constexpr auto loops = []<int... I>(std::integer_sequence<int, I...>) {
        return std::array<std::array<Run, kNRVectors>, kMR>{std::array<Run, kNRVectors>{
            Loop::template run<I + 1, 1>, Loop::template run<I + 1, 2>}...};
    }(std::make_integer_sequence<int, kMR>{});
    return loops[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>(vectors - 1)];
}

}  // namespace handgrad
