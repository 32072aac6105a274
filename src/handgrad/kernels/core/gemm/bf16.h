// The tiled product in bfloat16: operands rounded from float32 as they are packed, sums in float32.
//
// It is the product of matmul.h with another panel element and another micro-kernel. Where a
// float32 micro-panel has a value for each lane and k, this one has a Bf16x2 for each lane and two
// adjacent k, the form the instruction takes. Packing and epilogues are those of the float32
// product.
//   avx512_bf16  one vector of Bf16x2 times one broadcast Bf16x2, added to 16 sums.
//   amx          16×16 tiles, 32 terms at a time; in micro-panels of A the elements of a row are
//                adjacent, so it has a loop of its own.
//
// A kernel calls `multiply_at_precision` where it would call `multiply`, and is done.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/gemm/matmul.h"

namespace handgrad {

enum class Bf16Unit { kNone, kAvx512, kAmx };

// The unit in use: the best this CPU and system offer, or the one that HANDGRAD_BF16 names.
Bf16Unit bf16_unit();
const char* bf16_unit_name();

// Multiply-adds on the unit in registers alone, for the peak meter: operations of so many rounds.
double bf16_multiply_adds(long rounds);

#if defined(__AVX512F__)
constexpr bool kBf16Compiled = true;
#else
constexpr bool kBf16Compiled = false;
#endif

// Bf16x2 where a product runs on AMX.
enum class AmxBf16x2 : std::uint32_t {};
// One of its values.
enum class Bf16 : std::uint16_t {};

#if defined(__AVX512F__)
namespace detail {
template <std::size_t... I>
__attribute__((target("avx512bf16"))) inline __m512i zip_bf16(__m512bh rounded,
                                                              std::index_sequence<I...>) {
    const auto values = (Vec<std::int16_t>)rounded;
    return (__m512i)shuffle<static_cast<int>(I / 2 + I % 2 * kLanes<float>)...>(values, values);
}
}  // namespace detail

// Lanes of `even` become the lower halves of elements, lanes of `odd` the upper ones.
__attribute__((target("avx512bf16"))) inline __m512i round_to_bf16x2(__m512 even, __m512 odd) {
    return detail::zip_bf16(_mm512_cvtne2ps_pbh(odd, even),
                            std::make_index_sequence<2 * kLanes<float>>{});
}
#endif

// Rounds values side by side, in a row that is read unpacked: the upper half of an odd last element
// is 0.
void round_row(Bf16x2* row, const float* values, long count);
// The same for `count` lanes of a vector. One instruction, in assembly: a function for another
// instruction set cannot be made part of what calls it, and here the call would take longer.
inline void round_lanes(Bf16x2* row, Vec<float> values, long count) {
#if defined(__AVX512F__)
    __m256i rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(values));
    if (count < kLanes<float>)
        rounded = _mm256_maskz_mov_epi16(static_cast<__mmask16>((1u << count) - 1), rounded);
    _mm256_mask_storeu_epi32(row, static_cast<__mmask8>((1u << (count + 1) / 2) - 1), rounded);
#else
    static_cast<void>(row), static_cast<void>(values), static_cast<void>(count);
#endif
}

// panel[p · width + l] = the values of lane l at 2p and 2p + 1, for k values from values[p · width
// + l]; the upper half of an odd last element is 0.
void round_panel(Bf16x2* panel, const float* values, long width, long k);

// Packs a micro-panel from a matrix with any strides: `lanes` lanes from `lane`, zeros up to width.
void pack_bf16x2(Bf16x2* panel, int width, const StridedPack<float>& matrix, long lane, int lanes,
                 long first_k, long k);

// Values by themselves.
void round_values(Bf16* rounded, const float* values, long count);

// Packs a matrix as Bf16x2. `k` is the number of terms in all.
struct Bf16x2Pack {
    const StridedPack<float>& pack;
    long k;

    bool lanes_adjacent() const { return pack.lanes_adjacent(); }

    void operator()(Bf16x2* panel, int width, long first, int lanes, long element,
                    long elements) const {
        const long count = std::min(2 * elements, k - 2 * element);
        pack_bf16x2(panel, width, pack, first, lanes, 2 * element, count);
    }
};

// The terms of a sum that a panel element holds.
template <class Element>
constexpr long kTermsPerElement = std::is_same_v<Element, Bf16x2> ? 2 : 1;
template <class Element>
constexpr long elements_of(long k) {
    return (k + kTermsPerElement<Element> - 1) / kTermsPerElement<Element>;
}

// The pack that fills micro-panels of such elements.
template <class Element, class Pack>
auto panel_pack(const Pack& pack, long k) {
    if constexpr (std::is_same_v<Element, Bf16x2>)
        return Bf16x2Pack{pack, k};
    else
        return pack;
}

// The order of elements differs between the sides of a product, see amx.h.
enum class Side { kLeft, kRight };

// The k of one AMX instruction, and the lanes of a micro-panel: a square of each side is packed at
// a time.
constexpr int kAmxSide = 32;
constexpr long kSquareElements = kAmxSide * kAmxSide / 2;

// Packs a square of 32 lanes × 32 terms, of which `lanes` and `k` are there; the others are 0.
void pack_square(Side side, Bf16x2* square, const StridedPack<float>& matrix, long lane, int lanes,
                 long first_k, long k);

// C = A B on AMX.
void multiply_amx(long rows, long columns, long k, const StridedPack<float>& a,
                  const StridedPack<float>& b, const AnyEpilogue<float>& epilogue);

// C = A B in bfloat16; rounding to nearest even on the way in. Not where there is no unit.
void multiply_bf16(long rows, long columns, long k, const StridedPack<float>& a,
                   const StridedPack<float>& b, const AnyEpilogue<float>& epilogue);

// `multiply` at the precision in force: float32 operands may be rounded to bfloat16, float64 ones
// never are.
template <class T>
void multiply_at_precision(long rows, long columns, long k, const StridedPack<T>& a,
                           const StridedPack<T>& b, const AnyEpilogue<T>& epilogue) {
    if constexpr (kBf16Compiled && std::is_same_v<T, float>)
        if (precision_bf16()) return multiply_bf16(rows, columns, k, a, b, epilogue);
    multiply<T>(rows, columns, k, a, b, epilogue);
}

// Declares that a kernel has a loop for a unit, and its panel element there.
template <Bf16Unit Unit, class PanelElement>
struct On {
    static constexpr Bf16Unit kUnit = Unit;
    using Element = PanelElement;
};

// Calls body.operator()<Element>() with the panel element at the precision in force, for kernels
// with loops of their own: of `Loops` the one for the unit in use, otherwise T. Dots of Bf16x2 are
// no way out where the unit is AMX: on its machines they have half the speed of float32 (87 beside
// 170 GFLOP/s on a core).
template <class T, class... Loops, class Body>
void at_precision(const Body& body) {
    bool done = false;
    if constexpr (kBf16Compiled && std::is_same_v<T, float>) {
        const auto offer = [&]<class Loop>() {
            if (bf16_unit() != Loop::kUnit) return;
            body.template operator()<typename Loop::Element>();
            done = true;
        };
        if (precision_bf16()) (offer.template operator()<Loops>(), ...);
    }
    if (!done) body.template operator()<T>();
}

}  // namespace handgrad
