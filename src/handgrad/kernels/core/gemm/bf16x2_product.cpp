#include "core/gemm/bf16x2_product.h"

namespace handgrad {

#if defined(__AVX512F__)
namespace {

void multiply_on_amx(long k, const Bf16x2* a, long a_step, const Bf16x2* b, long b_step, float* c,
                     long c_step, bool accumulate) {
    amx_micro_kernel(kBf16Side, kBf16Side, k / 2, {a, kAmxElements, a_step}, b, b_step, c, c_step,
                     accumulate);
}

void multiply_on_vectors(long k, const Bf16x2* a, long a_step, const Bf16x2* b, long b_step,
                         float* c, long c_step, bool accumulate) {
    constexpr int kRows = 8;
    for (long row = 0; row < kBf16Side;
         row += kRows, a += kRows * kAmxElements, c += kRows * c_step) {
        RegisterTile<Bf16x2, kRows, 2> tile;
        tile.begin(c, c_step, accumulate);
        for (long p = 0; p < k / 2; p++) {
            const Bf16x2* left = a + p / kAmxElements * a_step + p % kAmxElements;
            tile.add([&](int i) { return left[i * kAmxElements]; }, b + p * b_step);
        }
        tile.end(c, c_step);
    }
}

}  // namespace

// A bfloat16 value is the upper half of a float32 one.
__attribute__((target("avx512bf16"))) void round_in_place(float* values, long count) {
    typedef std::uint16_t Bf16Vector __attribute__((vector_size(32)));
    for (long i = 0; i < count; i += 16) {
        const auto rounded = (Bf16Vector)_mm512_cvtneps_pbh(_mm512_loadu_ps(values + i));
        const auto bits = __builtin_convertvector(rounded, Vec<std::uint32_t>) << 16;
        store(values + i, (Vec<float>)bits);
    }
}

__attribute__((target("avx512bf16"))) void round_left(Bf16x2* left, const float* values, long pitch,
                                                      long rows, long k) {
    const auto mask = static_cast<__mmask32>((std::uint64_t{1} << k) - 1);
    for (long i = 0; i < rows; i++, values += pitch) {
        const __m512 first = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), values);
        const __m512 second =
            _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), values + 16);
        _mm512_storeu_si512(left + i * kAmxElements, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
    std::fill(left + rows * kAmxElements, left + whole_sides(rows) * kAmxElements, Bf16x2{});
}

__attribute__((target("avx512bf16"))) void round_right(Bf16x2* right, long step,
                                                       const float* values, long pitch, long rows) {
    for (long i = 0; i < whole_sides(rows); i += 2, values += 2 * pitch, right += step)
        for (long l = 0; l < kBf16Side; l += 16) {
            const __m512 even = i < rows ? _mm512_loadu_ps(values + l) : _mm512_setzero_ps();
            const __m512 odd =
                i + 1 < rows ? _mm512_loadu_ps(values + pitch + l) : _mm512_setzero_ps();
            _mm512_storeu_si512(right + l, round_to_bf16x2(even, odd));
        }
}

void multiply_bf16x2(long rows, long lanes, long k, const Bf16x2* a, long a_step, const Bf16x2* b,
                     long b_step, float* c, long c_step, bool accumulate) {
    const auto multiply = bf16_unit() == Bf16Unit::kAmx ? multiply_on_amx : multiply_on_vectors;
    for (long lane = 0; lane < lanes; lane += kBf16Side)
        for (long row = 0; row < rows; row += kBf16Side)
            multiply(k, a + row * kAmxElements, a_step, b + lane, b_step, c + row * c_step + lane,
                     c_step, accumulate);
}

#endif

}  // namespace handgrad
