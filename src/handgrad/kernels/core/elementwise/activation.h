// The activations of ops/activation.py on vectors, for the end of a fused op and for ops of their
// own.
//
// Each has value(a) and gradient(dh, kept), where what is kept is the output h = f(a) if
// kFromOutput and the value a before the activation if not. With kHasKink the slope jumps at 0, so
// that a subnormal a must not count as 0.
#pragma once

#include <stdexcept>

#include "core/simd/simd.h"
#include "core/simd/vectormath.h"

namespace handgrad {

template <class T>
struct Identity {
    static constexpr bool kFromOutput = true;
    static constexpr bool kHasKink = false;
    Vec<T> value(Vec<T> a) const { return a; }
    Vec<T> gradient(Vec<T> dh, Vec<T>) const { return dh; }
};

template <class T>
struct Relu {
    static constexpr bool kFromOutput = true;
    static constexpr bool kHasKink = true;
    Vec<T> value(Vec<T> a) const { return a <= T(0) ? Vec<T>{} : a; }
    Vec<T> gradient(Vec<T> dh, Vec<T> h) const { return h > T(0) ? dh : Vec<T>{}; }
};

// Not from the output, whose sign is lost where the slope is 0 or negative.
template <class T>
struct LeakyRelu {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = true;
    T negative_slope;
    Vec<T> value(Vec<T> a) const { return a > T(0) ? a : negative_slope * a; }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const { return a > T(0) ? dh : negative_slope * dh; }
};

template <class T>
struct Sigmoid {
    static constexpr bool kFromOutput = true;
    static constexpr bool kHasKink = false;
    Vec<T> value(Vec<T> a) const { return sigmoid(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> h) const { return dh * h * (T(1) - h); }
};

template <class T>
struct Tanh {
    static constexpr bool kFromOutput = true;
    static constexpr bool kHasKink = false;
    Vec<T> value(Vec<T> a) const { return tanh(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> h) const { return dh * (T(1) - h * h); }
};

// a Φ(a), Φ(a) = ½ (1 + erf(a/√2)).
template <class T>
struct Gelu {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = false;
    static constexpr T kSqrtHalf = T(0.70710678118654752440);
    static constexpr T kInvSqrt2Pi = T(0.39894228040143267794);

    static Vec<T> probability(Vec<T> a) { return T(0.5) * (T(1) + erf(Vec<T>(kSqrtHalf * a))); }
    Vec<T> value(Vec<T> a) const { return a * probability(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const {
        const Vec<T> density = kInvSqrt2Pi * exp(Vec<T>(T(-0.5) * a * a));
        return dh * (probability(a) + a * density);
    }
};

// a ½ (1 + tanh u), u = √(2/π) (a + 0.044715 a³).
template <class T>
struct GeluTanh {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = false;
    static constexpr T kSqrt2OverPi = T(0.79788456080286535588);
    static constexpr T kCubic = T(0.044715);

    static Vec<T> tanh_u(Vec<T> a) { return tanh(Vec<T>(kSqrt2OverPi * (a + kCubic * a * a * a))); }
    Vec<T> value(Vec<T> a) const { return a * (T(0.5) * (T(1) + tanh_u(a))); }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const {
        const Vec<T> t = tanh_u(a);
        const Vec<T> du = kSqrt2OverPi * (T(1) + T(3) * kCubic * a * a);
        const Vec<T> density = T(0.5) * (T(1) - t * t) * du;
        return dh * (T(0.5) * (T(1) + t) + a * density);
    }
};

template <class T>
struct Silu {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = false;
    Vec<T> value(Vec<T> a) const { return a * sigmoid(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const {
        const Vec<T> gate = sigmoid(a);
        return dh * (gate * (T(1) + a * (T(1) - gate)));
    }
};

template <class T>
struct Erf {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = false;
    static constexpr T kTwoOverSqrtPi = T(1.12837916709551257390);
    Vec<T> value(Vec<T> a) const { return erf(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const {
        return dh * (kTwoOverSqrtPi * exp(Vec<T>(-a * a)));
    }
};

template <class T>
struct Sin {
    static constexpr bool kFromOutput = false;
    static constexpr bool kHasKink = false;
    Vec<T> value(Vec<T> a) const { return sin(a); }
    Vec<T> gradient(Vec<T> dh, Vec<T> a) const { return dh * cos(a); }
};

// As kernels/activation.py numbers them.
enum class Activation {
    kIdentity,
    kRelu,
    kLeakyRelu,
    kSigmoid,
    kTanh,
    kGelu,
    kGeluTanh,
    kSilu,
    kErf,
    kSin
};

constexpr int kLastActivation = static_cast<int>(Activation::kSin);

// Calls use(f) with the activation of this code as a type.
template <class T, class Use>
decltype(auto) with_activation_type(int code, double negative_slope, Use&& use) {
    switch (static_cast<Activation>(code)) {
        case Activation::kIdentity:
            return use(Identity<T>{});
        case Activation::kRelu:
            return use(Relu<T>{});
        case Activation::kLeakyRelu:
            return use(LeakyRelu<T>{static_cast<T>(negative_slope)});
        case Activation::kSigmoid:
            return use(Sigmoid<T>{});
        case Activation::kTanh:
            return use(Tanh<T>{});
        case Activation::kGelu:
            return use(Gelu<T>{});
        case Activation::kGeluTanh:
            return use(GeluTanh<T>{});
        case Activation::kSilu:
            return use(Silu<T>{});
        case Activation::kErf:
            return use(Erf<T>{});
        case Activation::kSin:
            return use(Sin<T>{});
    }
    throw std::invalid_argument("no activation has this code");
}

// The activation of a code that is known when it runs, which is asked for every vector.
template <class T>
struct AnyActivation {
    int code;
    double negative_slope;
    bool kFromOutput;

    AnyActivation(int code, double negative_slope)
        : code(code),
          negative_slope(negative_slope),
          kFromOutput(with([](auto f) { return f.kFromOutput; })) {}
    [[gnu::noinline]] Vec<T> value(Vec<T> a) const {
        return with([&](auto f) { return f.value(a); });
    }
    [[gnu::noinline]] Vec<T> gradient(Vec<T> dh, Vec<T> kept) const {
        return with([&](auto f) { return f.gradient(dh, kept); });
    }

  private:
    template <class Use>
    auto with(Use&& use) const {
        return with_activation_type<T>(code, negative_slope, use);
    }
};

// Calls use(f) with the activation of this code. A loop is compiled for each of those that cost one
// or two instructions, and once for all others, beside whose exponentials a call is little; in the
// set of last resort once for all.
template <class T, class Use>
decltype(auto) with_activation(int code, double negative_slope, Use&& use) {
    if constexpr (!kFallback) {
        if (code == static_cast<int>(Activation::kIdentity)) return use(Identity<T>{});
        if (code == static_cast<int>(Activation::kRelu)) return use(Relu<T>{});
    }
    return use(AnyActivation<T>(code, negative_slope));
}

}  // namespace handgrad
