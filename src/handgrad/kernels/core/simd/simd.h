// Vectors of the compiler's own kind: one source for AVX-512, AVX2, SSE2 and NEON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace handgrad {

static_assert(sizeof(long) == 8, "sizes and positions are long: 64 bits of it are needed");

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kVectorRegisters = 32;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kVectorRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16;
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorBytes = 16;
constexpr int kVectorRegisters = 16;
#endif

// True of the set that runs on every CPU of an architecture with better ones: it is the last
// resort, and is to compile quickly.
#if defined(__x86_64__) && !defined(__AVX__)
constexpr bool kFallback = true;
#else
constexpr bool kFallback = false;
#endif

namespace detail {
template <class T>
    requires std::is_arithmetic_v<T>
struct VectorOf {
    typedef T type __attribute__((vector_size(kVectorBytes)));
};
}  // namespace detail

template <class T>
using Vec = typename detail::VectorOf<T>::type;
// The type of one lane of a vector.
template <class V>
using Lane = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
inline void store(T* p, Vec<T> v) {
    std::memcpy(p, &v, sizeof v);
}

template <class T>
inline Vec<T> splat(T x) {
    return x - Vec<T>{};
}

// sum + a b, rounded once where the machine can. Clang fuses the two within one block of code
// alone, and the checks of sanitizers divide blocks.
template <class V>
[[gnu::always_inline]] inline V fused(V sum, V a, V b) {
#if defined(__clang__) && defined(__AVX512F__)
    if constexpr (std::is_same_v<V, Vec<float>>)
        return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
    else
        return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif defined(__clang__) && defined(__FMA__)
    if constexpr (std::is_same_v<V, Vec<float>>)
        return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
    else
        return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#else
    return sum + a * b;
#endif
}

// 0, 1, 2, ...
template <class T>
inline Vec<T> lane_numbers() {
    Vec<T> v;
    for (int i = 0; i < kLanes<T>; i++) v[i] = T(i);
    return v;
}

// A masked load of the first n values, at most all lanes; the rest is `fill`. AVX2's own: lanes put
// together in memory one by one would keep the load of the vector waiting for each of them.
template <class T>
inline Vec<T> masked_load(const T* p, long n, T fill = T(0)) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>)
        return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), static_cast<__mmask16>((1u << n) - 1), p);
    else if constexpr (std::is_same_v<T, double>)
        return _mm512_mask_loadu_pd(_mm512_set1_pd(fill), static_cast<__mmask8>((1u << n) - 1), p);
    else if constexpr (sizeof(T) == 4)
        return (Vec<T>)_mm512_mask_loadu_epi32((__m512i)splat(fill),
                                               static_cast<__mmask16>((1u << n) - 1), p);
    else
#endif
    {
        if (n == kLanes<T>) return load(p);
#if defined(__AVX2__) && !defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) {
            const auto kept = lane_numbers<std::int32_t>() < static_cast<std::int32_t>(n);
            const auto from = reinterpret_cast<const int*>(p);
            return kept ? (Vec<T>)_mm256_maskload_epi32(from, (__m256i)kept) : splat(fill);
        } else if constexpr (sizeof(T) == 8) {
            const auto kept = lane_numbers<std::int64_t>() < n;
            const auto from = reinterpret_cast<const long long*>(p);
            return kept ? (Vec<T>)_mm256_maskload_epi64(from, (__m256i)kept) : splat(fill);
        } else
#endif
        {
            Vec<T> v = splat(fill);
            for (long i = 0; i < n; i++) v[i] = p[i];
            return v;
        }
    }
}

// Masked stores of AVX2 are many operations on CPUs of AMD (Fog, Instruction tables): what is not
// whole goes by lanes.
template <class T>
inline void masked_store(T* p, Vec<T> v, long n) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>)
        return _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
    else if constexpr (std::is_same_v<T, double>)
        return _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
    else if constexpr (sizeof(T) == 4)
        return _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1u << n) - 1), (__m512i)v);
#endif
    if (n == kLanes<T>) return store(p, v);
    for (long i = 0; i < n; i++) p[i] = v[i];
}

// A non-temporal store, for results too large to be found in a cache later: it passes the caches
// by, and lines that are written as a whole need not be fetched first. Work is handed from thread
// to thread by a locked instruction, which waits for these stores too.
template <class T>
inline void stream(T* p, Vec<T> v) {
#if defined(__AVX512F__)
    if (reinterpret_cast<std::uintptr_t>(p) % kVectorBytes == 0)
        return _mm512_stream_ps(reinterpret_cast<float*>(p), (__m512)v);
#endif
    store(p, v);
}

// Rows of images are short: a call of memcpy for each would take longer than the copy.
template <class T>
inline void copy_values(T* target, const T* source, long count) {
    long i = 0;
    for (; i + kLanes<T> <= count; i += kLanes<T>) store(target + i, load(source + i));
    if (i < count) masked_store(target + i, masked_load(source + i, count - i), count - i);
}

// Lanes of a, followed by those of b, by number. GCC 11 has only the older of the two builtins.
template <int... I, class V>
inline V shuffle(V a, V b) {
#if __has_builtin(__builtin_shufflevector)
    return __builtin_shufflevector(a, b, I...);
#else
    using Index =
        std::conditional_t<sizeof(Lane<V>) == 2, std::int16_t,
                           std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>>;
    return __builtin_shuffle(a, b, Vec<Index>{I...});
#endif
}

template <class V>
inline V maximum(V a, V b) {
    return a > b ? a : b;
}

template <class V>
inline V minimum(V a, V b) {
    return a < b ? a : b;
}

namespace detail {
// Lane i is lane i + By of v, counted round.
template <int By, class V, std::size_t... I>
inline V rotate(V v, std::index_sequence<I...>) {
    return shuffle<static_cast<int>((I + By) % sizeof...(I))...>(v, v);
}
// The lower half of the lanes with the upper one, again and again until one is left.
template <int Bf16, class V, class Combine>
inline Lane<V> fold(V v, const Combine& combine) {
    if constexpr (Bf16 == 0)
        return v[0];
    else
        return fold<Bf16 / 2>(
            combine(v, rotate<Bf16>(v, std::make_index_sequence<kLanes<Lane<V>>>{})), combine);
}
}  // namespace detail

// Sum and maximum over the lanes, in one fixed order.
template <class V>
inline Lane<V> lane_sum(V v) {
    return detail::fold<kLanes<Lane<V>> / 2>(v, [](V a, V b) { return V(a + b); });
}

template <class V>
inline Lane<V> lane_max(V v) {
    return detail::fold<kLanes<Lane<V>> / 2>(v, [](V a, V b) { return maximum(a, b); });
}

namespace detail {
template <class T, std::size_t... I>
inline Vec<T> zip_low(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
    return shuffle<static_cast<int>(I % 2 ? kLanes<T> + I / 2 : I / 2)...>(a, b);
}
template <class T, std::size_t... I>
inline Vec<T> zip_high(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
    constexpr int half = kLanes<T> / 2;
    return shuffle<static_cast<int>(half + (I % 2 ? kLanes<T> + I / 2 : I / 2))...>(a, b);
}
}  // namespace detail

namespace detail {
// Every second value of those from low[0] to high's last, which lies 2 · lanes - 2 further.
template <class T, std::size_t... I>
inline Vec<T> every_second(Vec<T> low, Vec<T> high, std::index_sequence<I...>) {
    return shuffle<static_cast<int>(I < kLanes<T> / 2 ? 2 * I : 2 * I + 1)...>(low, high);
}
}  // namespace detail

// count <= lanes values, `stride` apart.
template <class T>
inline Vec<T> load_strided(const T* p, long stride, long count) {
    constexpr int n = kLanes<T>;
    if (stride == 1) return masked_load(p, count);
    if (stride == 2) {
        const auto part = [](const T* from, long have) {
            return have >= n ? load(from) : masked_load(from, std::max(have, 0L));
        };
        return detail::every_second<T>(part(p, 2 * count - 1), part(p + n - 1, 2 * count - n),
                                       std::make_index_sequence<n>{});
    }
    Vec<T> v{};
    for (long k = 0; k < count; k++) v[k] = p[k * stride];
    return v;
}

namespace detail {
template <int First, class T, std::size_t... I>
inline Vec<T> deinterleave(Vec<T> low, Vec<T> high, std::index_sequence<I...>) {
    return shuffle<(First + 2 * static_cast<int>(I))...>(low, high);
}
}  // namespace detail

// Two interleaved vectors of `count` lanes: a0, b0, a1, b1, ...
template <class T>
inline std::pair<Vec<T>, Vec<T>> load_interleaved(const T* p, long count) {
    constexpr long n = kLanes<T>;
    constexpr auto lanes = std::make_index_sequence<n>{};
    const Vec<T> low = 2 * count >= n ? load(p) : masked_load(p, 2 * count);
    const Vec<T> high = count == n ? load(p + n) : masked_load(p + n, std::max(2 * count - n, 0L));
    return {detail::deinterleave<0, T>(low, high, lanes),
            detail::deinterleave<1, T>(low, high, lanes)};
}

// Stores the first `count` lanes of a and b interleaved.
template <class T>
inline void store_interleaved(T* p, Vec<T> a, Vec<T> b, long count) {
    constexpr long n = kLanes<T>;
    constexpr auto lanes = std::make_index_sequence<n>{};
    const Vec<T> low = detail::zip_low<T>(a, b, lanes), high = detail::zip_high<T>(a, b, lanes);
    if (count == n) {
        store(p, low);
        store(p + n, high);
    } else {
        masked_store(p, low, std::min(2 * count, n));
        masked_store(p + n, high, std::max(2 * count - n, 0L));
    }
}

// The first `count` lanes, `stride` apart.
template <class T>
inline void store_strided(T* p, Vec<T> v, long stride, long count) {
    if (stride == 1) return masked_store(p, v, count);
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) {
        if (stride == 2) {
            constexpr auto lanes = std::make_index_sequence<kLanes<T>>{};
            const auto even_lanes = [](long values) {
                return static_cast<__mmask16>(0x5555u & ((1u << 2 * values) - 1));
            };
            const long low = std::min(count, 8L);
            _mm512_mask_storeu_ps(p, even_lanes(low), detail::zip_low<T>(v, v, lanes));
            _mm512_mask_storeu_ps(p + 16, even_lanes(count - low),
                                  detail::zip_high<T>(v, v, lanes));
            return;
        }
    }
#endif
    for (long i = 0; i < count; i++) p[i * stride] = v[i];
}

// count values, those of the source `stride` apart.
template <class T>
inline void copy_strided(T* target, const T* source, long stride, long count) {
    if (stride == 1) return copy_values(target, source, count);
    long i = 0;
    for (; i + kLanes<T> <= count; i += kLanes<T>)
        store(target + i, load_strided(source + i * stride, stride, kLanes<T>));
    for (; i < count; i++) target[i] = source[i * stride];
}

// A square of kLanes × kLanes values, transposed in registers: log2(lanes) rounds in which row i is
// zipped with row i + lanes/2.
template <class T>
inline void transpose(Vec<T> (&rows)[kLanes<T>]) {
    constexpr int n = kLanes<T>;
    constexpr auto lanes = std::make_index_sequence<n>{};
    for (int round = 1; round < n; round *= 2) {
        Vec<T> next[n];
#pragma GCC unroll 16
        for (int i = 0; i < n / 2; i++) {
            next[2 * i] = detail::zip_low<T>(rows[i], rows[i + n / 2], lanes);
            next[2 * i + 1] = detail::zip_high<T>(rows[i], rows[i + n / 2], lanes);
        }
#pragma GCC unroll 16
        for (int i = 0; i < n; i++) rows[i] = next[i];
    }
}

}  // namespace handgrad
