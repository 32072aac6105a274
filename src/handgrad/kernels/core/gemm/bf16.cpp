#include "core/gemm/bf16.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/elementwise/elementwise.h"
#include "core/gemm/amx.h"
#include "core/runtime/memory.h"

namespace handgrad {

#if defined(__AVX512F__)
namespace {

constexpr int kBf16Lanes = 16;

inline __mmask16 first_lanes(long n) {
    return static_cast<__mmask16>((1u << std::clamp(n, 0L, 16L)) - 1);
}

// 16 lanes × 32 terms of a float32 matrix, of which so many lanes are there, and all terms: the
// terms of a lane are adjacent (by_lane), or the lanes of a term are.
struct Patch {
    const float* data;
    long stride;
    bool by_lane;
    long lanes = kBf16Lanes;
};

constexpr int kPatchK = 2 * kBf16Lanes;

// A patch of any matrix: where it lies, or in `copy` where terms are missing, which are 0, or
// where they lie apart.
Patch patch_of(const StridedPack<float>& m, long lane, long lanes, long first_k, long k,
               float* copy) {
    const float* source = m.data + lane * m.lane_stride + first_k * m.k_stride;
    const bool by_lane = m.k_stride == 1 && m.lane_stride != 1;
    if (k >= kPatchK && by_lane) return {source, m.lane_stride, true, lanes};
    if (k >= kPatchK && m.lane_stride == 1) return {source, m.k_stride, false, lanes};
    const auto row = [](const float* from, long stride, long count) {
        if (stride == 1) return masked_load(from, std::clamp(count, 0L, 16L));
        return load_strided(from, stride, std::clamp(count, 0L, 16L));
    };
    if (by_lane) {
        for (int l = 0; l < kBf16Lanes; l++) {
            const float* from = source + l * m.lane_stride;
            const long count = l < lanes ? k : 0;
            store(copy + l * kPatchK, row(from, 1, count));
            store(copy + l * kPatchK + 16, row(from + 16, 1, count - 16));
        }
        return {copy, kPatchK, true};
    }
    for (int t = 0; t < kPatchK; t++)
        store(copy + t * kBf16Lanes,
              row(source + t * m.k_stride, m.lane_stride, t < k ? lanes : 0));
    return {copy, kBf16Lanes, false};
}

// The patch as Bf16x2: rows of lanes with 16 elements each, or rows of elements with 16 lanes each.
template <bool ByLane>
__attribute__((target("avx512bf16"))) inline void round_patch(Vec<float> (&rows)[kBf16Lanes],
                                                              const Patch& patch) {
    const __mmask16 there = ByLane ? 0xffff : first_lanes(patch.lanes);
    const auto at = [&](long i) { return _mm512_maskz_loadu_ps(there, patch.data + i); };
#pragma GCC unroll 16
    for (long r = 0; r < kBf16Lanes; r++)
        if (ByLane && r >= patch.lanes)
            rows[r] = Vec<float>{};
        else
            rows[r] = ByLane ? (Vec<float>)_mm512_cvtne2ps_pbh(at(r * patch.stride + 16),
                                                               at(r * patch.stride))
                             : (Vec<float>)round_to_bf16x2(at(2 * r * patch.stride),
                                                           at((2 * r + 1) * patch.stride));
}

// The same with rows as they are wanted.
__attribute__((target("avx512bf16"))) inline void load_patch(Vec<float> (&rows)[kBf16Lanes],
                                                             const Patch& patch, bool by_lane) {
    if (patch.by_lane)
        round_patch<true>(rows, patch);
    else
        round_patch<false>(rows, patch);
    if (patch.by_lane != by_lane) transpose<float>(rows);
}

double dot_multiply_adds(long rounds) {
    constexpr int kChains = 12;
    Vec<float> sums[kChains] = {};
    Vec<float> one = broadcast(Bf16x2{0x3f803f80});
    for (long r = 0; r < rounds; r++) {
        asm volatile("" : "+v"(one));
#pragma GCC unroll 12
        for (int i = 0; i < kChains; i++) sums[i] = multiply_add<Bf16x2>(sums[i], one, one);
#pragma GCC unroll 12
        for (int i = 0; i < kChains; i++) asm volatile("" : "+v"(sums[i]));
    }
    return static_cast<double>(rounds) * kChains * 64;
}

// A vector, or little more than one of AMX's squares, is not worth its tiles: the zeros that fill
// them up take longer than dots of Bf16x2.
bool fills_amx(long rows, long columns, long k) {
    return std::min(rows, columns) > 4 && rows * columns * k > kAmxSide * kAmxSide * kAmxSide;
}

Bf16Unit detect() {
    const bool dot = __builtin_cpu_supports("avx512bf16");
    const bool amx = dot && amx_granted();
    const char* asked = std::getenv("HANDGRAD_BF16");
    if (asked == nullptr) return amx ? Bf16Unit::kAmx : dot ? Bf16Unit::kAvx512 : Bf16Unit::kNone;
    if (std::strcmp(asked, "amx") == 0 && amx) return Bf16Unit::kAmx;
    if (std::strcmp(asked, "avx512_bf16") == 0 && dot) return Bf16Unit::kAvx512;
    if (std::strcmp(asked, "none") == 0) return Bf16Unit::kNone;
    throw std::invalid_argument(std::string("HANDGRAD_BF16 is '") + asked +
                                "'; allowed on this machine: " + (amx ? "amx, " : "") +
                                (dot ? "avx512_bf16, " : "") + "none");
}

}  // namespace

Bf16Unit bf16_unit() {
    static const Bf16Unit unit = detect();
    return unit;
}

void round_row(Bf16x2* row, const float* values, long count) {
    transform<float>(0, count, [&](auto lanes) {
        round_lanes(row + lanes.at / 2, lanes.load(values), std::min<long>(16, count - lanes.at));
    });
}

__attribute__((target("avx512bf16"))) void round_panel(Bf16x2* panel, const float* values,
                                                       long width, long k) {
    for (long t = 0; t < k; t += 2, values += 2 * width, panel += width)
        for (long l = 0; l < width; l += kBf16Lanes) {
            const __mmask16 mask = first_lanes(width - l);
            const __m512 even = _mm512_maskz_loadu_ps(mask, values + l);
            const __m512 odd =
                t + 1 < k ? _mm512_maskz_loadu_ps(mask, values + width + l) : _mm512_setzero_ps();
            _mm512_mask_storeu_epi32(panel + l, mask, round_to_bf16x2(even, odd));
        }
}

__attribute__((target("avx512bf16"))) void pack_bf16x2(Bf16x2* panel, int width,
                                                       const StridedPack<float>& matrix, long lane,
                                                       int lanes, long first_k, long k) {
    alignas(64) float copy[kBf16Lanes * kPatchK];
    Vec<float> rows[kBf16Lanes];
    for (long t = 0; t < k; t += kPatchK, panel += kBf16Lanes * width)
        for (int l = 0; l < width; l += kBf16Lanes) {
            load_patch(rows, patch_of(matrix, lane + l, lanes - l, first_k + t, k - t, copy),
                       false);
            const long elements = std::min<long>(kBf16Lanes, (k - t + 1) / 2);
            const int fits = std::min(kBf16Lanes, width - l);
            for (long r = 0; r < elements; r++)
                masked_store(reinterpret_cast<float*>(panel + r * width + l), rows[r], fits);
        }
}

__attribute__((target("avx512bf16"))) void pack_square(Side side, Bf16x2* square,
                                                       const StridedPack<float>& matrix, long lane,
                                                       int lanes, long first_k, long k) {
    alignas(64) float copy[kBf16Lanes * kPatchK];
    const bool left = side == Side::kLeft;
    for (int l = 0; l < kAmxSide; l += kBf16Lanes) {
        Vec<float> rows[kBf16Lanes];
        load_patch(rows, patch_of(matrix, lane + l, lanes - l, first_k, k, copy), left);
        auto* target = reinterpret_cast<float*>(left ? square + l * kBf16Lanes : square + l);
#pragma GCC unroll 16
        for (int r = 0; r < kBf16Lanes; r++)
            store(target + r * (left ? kBf16Lanes : kAmxSide), rows[r]);
    }
}

__attribute__((target("avx512bf16"))) void round_values(Bf16* target, const float* values,
                                                        long count) {
    for (long i = 0; i < count; i += kBf16Lanes) {
        const __mmask16 mask = first_lanes(count - i);
        const auto rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, values + i));
        _mm256_mask_storeu_epi16(target + i, mask, rounded);
    }
}

void multiply_bf16(long rows, long columns, long k, const StridedPack<float>& a,
                   const StridedPack<float>& b, const AnyEpilogue<float>& epilogue) {
    if (bf16_unit() == Bf16Unit::kAmx && fills_amx(rows, columns, k))
        return multiply_amx(rows, columns, k, a, b, epilogue);
    multiply<Bf16x2>(rows, columns, (k + 1) / 2, Bf16x2Pack{a, k}, Bf16x2Pack{b, k}, epilogue);
}

double bf16_multiply_adds(long rounds) {
    return bf16_unit() == Bf16Unit::kAmx ? amx_multiply_adds(rounds) : dot_multiply_adds(rounds);
}

#else

double bf16_multiply_adds(long) { return 0; }

Bf16Unit bf16_unit() { return Bf16Unit::kNone; }

#endif

const char* bf16_unit_name() {
    constexpr const char* names[] = {"none", "avx512_bf16", "amx"};
    return names[static_cast<int>(bf16_unit())];
}

}  // namespace handgrad
