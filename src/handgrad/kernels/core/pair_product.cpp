#include "core/pair_product.h"

namespace handgrad {

#if defined(__AVX512F__)
namespace {

void multiply_on_amx(long terms, const Pair* a, long a_step, const Pair* b, long b_step, float* c,
                     long c_step, bool accumulate) {
    multiply_rows(kPairSide, kPairSide, terms / 2, {a, kAmxPairs, a_step}, b, b_step, c, c_step,
                  accumulate);
}

__attribute__((target("avx512bf16"))) void multiply_on_vectors(long terms, const Pair* a,
                                                               long a_step, const Pair* b,
                                                               long b_step, float* c, long c_step,
                                                               bool accumulate) {
    constexpr int kRows = 8;
    for (long row = 0; row < kPairSide; row += kRows, a += kRows * kAmxPairs, c += kRows * c_step) {
        __m512 sums[kRows][2];
#pragma GCC unroll 16
        for (int i = 0; i < kRows; i++)
            for (int v = 0; v < 2; v++)
                sums[i][v] =
                    accumulate ? _mm512_loadu_ps(c + i * c_step + v * 16) : _mm512_setzero_ps();
        for (long p = 0; p < terms / 2; p++) {
            const Pair* left = a + p / kAmxPairs * a_step + p % kAmxPairs;
            __m512bh right[2];
            for (int v = 0; v < 2; v++)
                right[v] = (__m512bh)_mm512_loadu_si512(b + p * b_step + v * 16);
#pragma GCC unroll 16
            for (int i = 0; i < kRows; i++) {
                const auto one = broadcast_pair(static_cast<int>(left[i * kAmxPairs]));
                for (int v = 0; v < 2; v++)
                    sums[i][v] = _mm512_dpbf16_ps(sums[i][v], one, right[v]);
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < kRows; i++)
            for (int v = 0; v < 2; v++) _mm512_storeu_ps(c + i * c_step + v * 16, sums[i][v]);
    }
}

}  // namespace

// A bfloat16 value is the upper half of a float32 one.
__attribute__((target("avx512bf16"))) void round_in_place(float* values, long count) {
    typedef std::uint16_t Halves __attribute__((vector_size(32)));
    for (long i = 0; i < count; i += 16) {
        const auto halves = (Halves)_mm512_cvtneps_pbh(_mm512_loadu_ps(values + i));
        const auto bits = __builtin_convertvector(halves, Vec<std::uint32_t>) << 16;
        store(values + i, (Vec<float>)bits);
    }
}

__attribute__((target("avx512bf16"))) void round_left(Pair* left, const float* values, long pitch,
                                                      long rows, long terms) {
    const auto mask = static_cast<__mmask32>((std::uint64_t{1} << terms) - 1);
    for (long i = 0; i < rows; i++, values += pitch) {
        const __m512 first = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), values);
        const __m512 second =
            _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), values + 16);
        _mm512_storeu_si512(left + i * kAmxPairs, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
    std::fill(left + rows * kAmxPairs, left + whole_sides(rows) * kAmxPairs, Pair{});
}

__attribute__((target("avx512bf16"))) void round_right(Pair* right, long step, const float* values,
                                                       long pitch, long rows) {
    for (long i = 0; i < whole_sides(rows); i += 2, values += 2 * pitch, right += step)
        for (long l = 0; l < kPairSide; l += 16) {
            const __m512 even = i < rows ? _mm512_loadu_ps(values + l) : _mm512_setzero_ps();
            const __m512 odd =
                i + 1 < rows ? _mm512_loadu_ps(values + pitch + l) : _mm512_setzero_ps();
            _mm512_storeu_si512(right + l, round_pairs(even, odd));
        }
}

void multiply_pairs(long rows, long lanes, long terms, const Pair* a, long a_step, const Pair* b,
                    long b_step, float* c, long c_step, bool accumulate) {
    const auto multiply = bf16_unit() == Bf16Unit::kAmx ? multiply_on_amx : multiply_on_vectors;
    for (long lane = 0; lane < lanes; lane += kPairSide)
        for (long row = 0; row < rows; row += kPairSide)
            multiply(terms, a + row * kAmxPairs, a_step, b + lane, b_step, c + row * c_step + lane,
                     c_step, accumulate);
}

#endif

}  // namespace handgrad
