// exp, log, tanh, sigmoid, erf, sin, cos and 1/x on vectors, for float and double.
//
// Largest errors in units in the last place of the result, over every magnitude, denormals included
// (tests/kernels/test_vectormath.py measures them against more precise arithmetic):
//              exp    log    log1p    tanh    sigmoid    erf    sin    cos    reciprocal
//   float      1.5    1      1.5      3       2.5        1.5    2.5    2.5    1
//   double     1.5    1      1.5      3       2.5        3.5    2.5    2.5    1
// NaN gives NaN, ±∞ the limit, overflow ∞, and underflow goes through the denormals to 0.
//
// Polynomials are the Taylor series, long enough that what is left out is below a tenth of an ulp;
// where constants are someone's, the name is beside them.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "core/simd/simd.h"

namespace handgrad {
namespace detail {

template <class V>
using Bits = Vec<std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>>;

template <class T>
struct Format;

template <>
struct Format<float> {
    static constexpr int kMantissaBits = 23;
    static constexpr int kBias = 127;
    static constexpr std::int32_t kMantissaMask = 0x7fffff;
    static constexpr int kExpTerms = 7;
    static constexpr int kLogTerms = 4;
    // exp is ∞ above and 0 below.
    static constexpr float kExpHigh = 89.0f;
    static constexpr float kExpLow = -104.0f;
    // ln 2 in two pieces; a whole number of up to 11 bits times the first is exact.
    // Source: Cody, Waite, Software Manual for the Elementary Functions (1980).
    static constexpr float kLn2High = 0.693359375f;
    static constexpr float kLn2Low = -2.12194440054690583e-4f;
    static constexpr int kSineTerms = 4;
    static constexpr int kCosineTerms = 4;
    // π/2 in pieces; a whole number of up to 12 bits times each but the last is exact.
    static constexpr std::array<float, 5> kHalfPi = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f,
                                                     0x1.68cp-39f, 0x1.1a6264p-54f};
    static constexpr float kMostAngle = 6000.0f;
};

template <>
struct Format<double> {
    static constexpr int kMantissaBits = 52;
    static constexpr int kBias = 1023;
    static constexpr std::int64_t kMantissaMask = 0xfffffffffffff;
    static constexpr int kExpTerms = 13;
    static constexpr int kLogTerms = 10;
    static constexpr double kExpHigh = 710.0;
    static constexpr double kExpLow = -746.0;
    static constexpr double kLn2High = 6.93147180369123816490e-01;
    static constexpr double kLn2Low = 1.90821492927058770002e-10;
    static constexpr int kSineTerms = 8;
    static constexpr int kCosineTerms = 7;
    // A whole number of up to 20 bits times each but the last is exact.
    static constexpr std::array<double, 4> kHalfPi = {0x1.921fb544p+0, 0x1.0b4611a6p-34,
                                                      0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
    static constexpr double kMostAngle = 1e6;
};

// Adding 1.5 · 2^mantissa bits leaves no room for a fraction: the sum is rounded to a whole number,
// which also stands in its lowest bits.
template <class T>
constexpr T kRounder = T(3) * T(std::int64_t(1) << (Format<T>::kMantissaBits - 1));

template <class V>
inline V nearest(V x) {
    using T = Lane<V>;
    return (x + kRounder<T>)-kRounder<T>;
}

// 2^n for whole n in the range of normal numbers.
template <class V>
inline V power_of_two(V n) {
    using T = Lane<V>;
    const V biased = n + (kRounder<T> + T(Format<T>::kBias));
    return (V)((Bits<V>)biased << Format<T>::kMantissaBits);
}

// x · 2^n for whole n, where the result may be denormal, 0 or ∞. In two factors, as 2^n may be out
// of range where the result is not.
template <class V>
inline V times_power_of_two(V x, V n) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Lane<V>) == 4)
        return _mm512_maskz_scalef_ps(0xffff, x, n);
    else
        return _mm512_maskz_scalef_pd(0xff, x, n);
#else
    const V half = nearest(V(n * Lane<V>(0.5)));
    return x * power_of_two(half) * power_of_two(V(n - half));
#endif
}

// c[0] + c[1] x + c[2] x² + ...
template <class V, std::size_t N>
inline V polynomial(const std::array<Lane<V>, N>& c, V x) {
    V value = splat(c[N - 1]);
#pragma GCC unroll 16
    for (int k = static_cast<int>(N) - 2; k >= 0; k--) value = value * x + c[k];
    return value;
}

// 1/1!, 1/2!, ...: (exp(x) − 1)/x.
template <class T>
constexpr auto kExpSeries = [] {
    std::array<T, Format<T>::kExpTerms> c{};
    double factorial = 1;
    for (int k = 0; k < Format<T>::kExpTerms; k++) c[k] = T(1 / (factorial *= k + 1));
    return c;
}();

// 2/3, 2/5, ...: (log((1 + s)/(1 − s)) − 2s)/s³ in powers of s².
template <class T>
constexpr auto kLogSeries = [] {
    std::array<T, Format<T>::kLogTerms> c{};
    for (int k = 0; k < Format<T>::kLogTerms; k++) c[k] = T(2.0 / (2 * k + 3));
    return c;
}();

// −1/3!, 1/5!, ...: (sin(x) − x)/x³ in powers of x².
template <class T>
constexpr auto kSineSeries = [] {
    std::array<T, Format<T>::kSineTerms> c{};
    double factorial = 1;
    for (int k = 0; k < Format<T>::kSineTerms; k++) {
        factorial *= -(2 * k + 2) * (2 * k + 3);
        c[k] = T(1 / factorial);
    }
    return c;
}();

// 1/4!, −1/6!, ...: (cos(x) − 1 + x²/2)/x⁴ in powers of x².
template <class T>
constexpr auto kCosineSeries = [] {
    std::array<T, Format<T>::kCosineTerms> c{};
    double factorial = -2;
    for (int k = 0; k < Format<T>::kCosineTerms; k++) {
        factorial *= -(2 * k + 3) * (2 * k + 4);
        c[k] = T(1 / factorial);
    }
    return c;
}();

// x = n ln 2 + rest with |rest| <= ln 2 / 2, and exp(rest) − 1.
template <class V>
struct ReducedPower {
    V n, rest_minus_one;

    explicit ReducedPower(V x) {
        using T = Lane<V>;
        n = nearest(x * T(1.44269504088896340736));
        const V rest = (x - n * Format<T>::kLn2High) - n * Format<T>::kLn2Low;
        rest_minus_one = rest * polynomial(kExpSeries<T>, rest);
    }
};

}  // namespace detail

template <class V>
inline V with_sign_of(V magnitude, V x) {
    using B = detail::Bits<V>;
    const B sign = (B)splat(Lane<V>(-0.0));
    return (V)(((B)magnitude & ~sign) | ((B)x & sign));
}

template <class V>
inline V absolute(V x) {
    return with_sign_of(x, V{});
}

template <class V>
inline V exp(V x) {
    using T = Lane<V>;
    using F = detail::Format<T>;
    // In this order of arguments a comparison with NaN gives NaN.
    x = maximum(splat(F::kExpLow), minimum(splat(F::kExpHigh), x));
    const detail::ReducedPower<V> power(x);
    return detail::times_power_of_two(V(T(1) + power.rest_minus_one), power.n);
}

// exp for what stands in a softmax, x up to 0 but for rounding: 0 where exp would be denormal,
// which saves the second factor.
template <class V>
inline V exp_weight(V x) {
    using T = Lane<V>;
    constexpr T kLow = sizeof(T) == 4 ? T(-87) : T(-708);
    const detail::ReducedPower<V> power(x);
    const V value = (T(1) + power.rest_minus_one) * detail::power_of_two(power.n);
    return x < kLow ? V{} : value;
}

// The compiler turns this loop into one instruction.
template <class V>
inline V square_root(V x) {
    for (int i = 0; i < kLanes<Lane<V>>; i++) x[i] = std::sqrt(x[i]);
    return x;
}

// 1/x where both are normal numbers: for float an estimate of 14 bits and a step of Newton's method
// are a third of a division.
template <class V>
inline V reciprocal(V x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Lane<V>) == 4) {
        const V estimate = _mm512_maskz_rcp14_ps(0xffff, x);
        return estimate + estimate * (1.0f - estimate * x);
    }
#endif
    return Lane<V>(1) / x;
}

template <class V>
inline V log(V x) {
    using T = Lane<V>;
    using F = detail::Format<T>;
    using B = detail::Bits<V>;
    constexpr T kLift = T(std::int64_t(1) << F::kMantissaBits);
    const auto denormal = x < std::numeric_limits<T>::min();
    const V normal = denormal ? x * kLift : x;
    // normal = 2^exponent · m with m between √½ and √2; the exponent is read as the lowest bits of
    // a number near 2^mantissa bits.
    const B raised = (((B)normal >> F::kMantissaBits) & (2 * F::kBias + 1)) | (B)splat(kLift);
    V exponent = (V)raised - (kLift + T(F::kBias));
    V m = (V)(((B)normal & F::kMantissaMask) | (B)splat(T(1)));
    const auto high = m > T(1.41421356237309504880);
    m = high ? m * T(0.5) : m;
    exponent = high ? exponent + T(1) : exponent;
    exponent = denormal ? exponent - T(F::kMantissaBits) : exponent;
    // log(1 + f) = f − f²/2 + s (f²/2 + s² (2/3 + 2/5 s² + ...)), s = f/(2 + f)   (fdlibm e_log.c)
    const V f = m - T(1);
    const V s = f / (T(2) + f);
    const V half_square = T(0.5) * f * f;
    const V series = s * s * detail::polynomial(detail::kLogSeries<T>, V(s * s));
    const V small = s * (half_square + series) + exponent * F::kLn2Low;
    const V value = exponent * F::kLn2High - ((half_square - small) - f);
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const V edge = x == T(0) ? splat(-kInfinity) : splat(std::numeric_limits<T>::quiet_NaN());
    return x > T(0) ? (x == kInfinity ? x : value) : edge;
}

// log(1 + x) for 0 <= x <= 1, precise for small x.
template <class V>
inline V log1p(V x) {
    using T = Lane<V>;
    const V sum = T(1) + x;
    return log(sum) + (x - (sum - T(1))) / sum;
}

template <class V>
inline V tanh(V x) {
    using T = Lane<V>;
    // −tanh |x| = e/(2 + e) with e = exp(−2|x|) − 1; beyond 20 it is −1 in either type.
    const V twice = maximum(splat(T(-40)), V(T(-2) * absolute(x)));
    const detail::ReducedPower<V> power(twice);
    const V scale = detail::power_of_two(power.n);
    const V e = scale * power.rest_minus_one + (scale - T(1));
    return with_sign_of(V(e / (T(2) + e)), x);
}

// 1/(1 + exp(−x)), from exp(−|x|), which does not overflow.
template <class V>
inline V sigmoid(V x) {
    using T = Lane<V>;
    const V decay = exp(V(-absolute(x)));
    const V top = x < T(0) ? decay : splat(T(1));
    return top / (T(1) + decay);
}

namespace detail {

// sin or cos of each lane beyond `kMostAngle`, where π/2 in pieces has too few digits. A function
// of its own, so that it stays out of loops that never call it.
template <int quarters, class V>
[[gnu::noinline]] void far_sine(const V& x, V& value) {
    using T = Lane<V>;
    for (int i = 0; i < kLanes<T>; i++)
        if (std::abs(x[i]) > Format<T>::kMostAngle)
            value[i] = quarters == 0 ? std::sin(x[i]) : std::cos(x[i]);
}

// sin(x + quarters π/2).
template <int quarters, class V>
inline V sine(V x) {
    using T = Lane<V>;
    using F = Format<T>;
    const V raised = x * T(0.63661977236758134308) + kRounder<T>;
    const V n = raised - kRounder<T>;
    // While many digits cancel, the subtractions are exact; after that they round twice.
    V rest = x;
#pragma GCC unroll 8
    for (const T piece : F::kHalfPi) rest -= n * piece;
    const V square = rest * rest;
    const V odd = rest + rest * square * polynomial(kSineSeries<T>, square);
    const V half = T(0.5) * square;
    const V even = T(1) - (half - square * square * polynomial(kCosineSeries<T>, square));
    // n stands in the lowest bits of `raised`.
    const auto quadrant = (Bits<V>)raised + quarters;
    const V turned = (quadrant & 1) != 0 ? even : odd;
    V value = (quadrant & 2) != 0 ? -turned : turned;
    if constexpr (quarters == 0)
        value = x == T(0) ? x : value;  // the sum above loses the sign of 0
    // A lane of NaN must not hide another: the largest is of 0 and 1.
    if (lane_max(V(absolute(x) > F::kMostAngle ? splat(T(1)) : V{})) > T(0)) [[unlikely]]
        far_sine<quarters>(x, value);
    return value;
}

}  // namespace detail

template <class V>
inline V sin(V x) {
    return detail::sine<0>(x);
}

template <class V>
inline V cos(V x) {
    return detail::sine<1>(x);
}

// 2/√π ∫₀ˣ exp(−t²) dt.
inline Vec<float> erf(Vec<float> x) {
    using V = Vec<float>;
    // N. Juffa's minimax polynomials: erf(x)/x − 1 in x², and log(1 − erf |x|)/|x| + 1 in |x|.
    constexpr std::array<float, 6> kNear = {1.28379166e-1f,  -3.76125336e-1f, 1.12819925e-1f,
                                            -2.67681349e-2f, 4.99119423e-3f,  -5.96761703e-4f};
    constexpr std::array<float, 7> kFar = {-1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f,
                                           2.42546219e-2f,  -3.88396438e-3f, 3.83197126e-4f,
                                           -1.72853470e-5f};
    const V near = x + x * detail::polynomial(kNear, V(x * x));
    // erf(4) is 1.
    const V distance = minimum(splat(4.0f), absolute(x));
    const V exponent = distance * detail::polynomial(kFar, distance) - distance;
    const V far = with_sign_of(V(1.0f - exp(exponent)), x);
    return distance > 0.927734375f ? far : near;
}

inline Vec<double> erf(Vec<double> x) {
    using V = Vec<double>;
    // The rational functions of ops/special.py: erf(x)/x in x² up to ½, and exp(x²) (1 − erf |x|)
    // in |x| beyond.
    // Source: Cody, Rational Chebyshev approximations for the error function (1969).
    constexpr std::array<double, 5> kNearTop = {3.20937758913846947e3, 3.77485237685302021e2,
                                                1.13864154151050156e2, 3.16112374387056560e0,
                                                1.85777706184603153e-1};
    constexpr std::array<double, 5> kNearBottom = {2.84423683343917062e3, 1.28261652607737228e3,
                                                   2.44024637934444173e2, 2.36012909523441209e1,
                                                   1.0};
    constexpr std::array<double, 9> kFarTop = {
        1.23033935479799725e3, 2.05107837782607147e3,  1.71204761263407058e3,
        8.81952221241769090e2, 2.98635138197400131e2,  6.61191906371416295e1,
        8.88314979438837594e0, 5.64188496988670089e-1, 2.15311535474403846e-8};
    constexpr std::array<double, 9> kFarBottom = {
        1.23033935480374942e3, 3.43936767414372164e3, 4.36261909014324716e3,
        3.29079923573345963e3, 1.62138957456669019e3, 5.37181101862009858e2,
        1.17693950891312499e2, 1.57449261107098347e1, 1.0};
    const V distance = minimum(splat(6.0), absolute(x));  // erf(6) is 1
    const V square = distance * distance;
    const auto is_near = distance <= 0.5;
    const V top =
        is_near ? detail::polynomial(kNearTop, square) : detail::polynomial(kFarTop, distance);
    const V bottom = is_near ? detail::polynomial(kNearBottom, square)
                             : detail::polynomial(kFarBottom, distance);
    const V ratio = top / bottom;
    const V far = with_sign_of(V(1.0 - exp(V(-square)) * ratio), x);
    return is_near ? x * ratio : far;
}

}  // namespace handgrad
