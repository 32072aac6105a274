// Kernels as Python calls them.
//
// A kernel's file says its name and a function for each type, and the functions' parameters say the
// rest: what is an array, of what type, written or read, and what may be None.
//     const KernelRegistrar sgd_registrar("sgd", sgd<float>, sgd<double>);
// Arguments are given by position. The first function that they fit is called; an argument that
// fits none is a TypeError. What is made for a function is a few instructions for each parameter:
// there are hundreds of functions in every instruction set's module.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/binding/binding.h"
#include "core/runtime/threads.h"

namespace handgrad {

enum class ParameterKind : unsigned char { kArray, kStrided, kInteger, kNumber, kFlag, kSizes };

// An argument of a function by position; `type` and `item_size` are those of an array, and `count`
// says how many sizes there are.
struct Parameter {
    ParameterKind kind;
    char type = 0;
    unsigned char item_size = 0;
    bool writeable = false;
    bool optional = false;
    unsigned char count = 0;
};

constexpr int kMostSizes = 16;
constexpr int kMostParameters = 24;

// An argument that has been read.
struct Argument {
    ArrayView view;
    bool given;
    union {
        long integer;
        double number;
        const long* sizes;
    };
};

// How a parameter of this type is read.
template <class P>
struct ParameterOf;

template <class T>
struct ParameterOf<Array<T>> {
    static constexpr Parameter kIs{ParameterKind::kArray, Array<T>::kKind, sizeof(T),
                                   !std::is_const_v<T>};
    static Array<T> value(const Argument& a) { return Array<T>(a.view); }
};
template <class T>
struct ParameterOf<Strided<T>> {
    static constexpr Parameter kIs{ParameterKind::kStrided, Array<T>::kKind, sizeof(T),
                                   !std::is_const_v<T>};
    static Strided<T> value(const Argument& a) { return Strided<T>(a.view); }
};
template <class A>
struct ParameterOf<std::optional<A>> {
    static constexpr Parameter kIs = [] {
        Parameter parameter = ParameterOf<A>::kIs;
        parameter.optional = true;
        return parameter;
    }();
    static std::optional<A> value(const Argument& a) {
        return a.given ? std::optional<A>(A(a.view)) : std::nullopt;
    }
};
template <>
struct ParameterOf<long> {
    static constexpr Parameter kIs{ParameterKind::kInteger};
    static long value(const Argument& a) { return a.integer; }
};
template <>
struct ParameterOf<int> {
    static constexpr Parameter kIs{.kind = ParameterKind::kInteger, .item_size = sizeof(int)};
    static int value(const Argument& a) { return static_cast<int>(a.integer); }
};
template <>
struct ParameterOf<double> {
    static constexpr Parameter kIs{ParameterKind::kNumber};
    static double value(const Argument& a) { return a.number; }
};
template <>
struct ParameterOf<bool> {
    static constexpr Parameter kIs{ParameterKind::kFlag};
    static bool value(const Argument& a) { return a.integer != 0; }
};
template <std::size_t N>
struct ParameterOf<std::array<long, N>> {
    static_assert(N <= kMostSizes);
    static constexpr Parameter kIs{.kind = ParameterKind::kSizes, .count = N};
    static std::array<long, N> value(const Argument& a) {
        std::array<long, N> sizes;
        for (std::size_t i = 0; i < N; i++) sizes[i] = a.sizes[i];
        return sizes;
    }
};

// A function for one type, whose own type is `make`'s to know. `make` returns what the function
// does, or 0.
struct Overload {
    void (*function)();
    double (*make)(void (*function)(), const Argument* arguments);
    const Parameter* parameters;
    int count;
    bool returns;
};

template <class Result, class... P>
struct Signature {
    static constexpr int kCount = static_cast<int>(sizeof...(P));
    static_assert(kCount <= kMostParameters);
    static constexpr Parameter kParameters[] = {ParameterOf<std::remove_cvref_t<P>>::kIs...};

    static double make(void (*function)(), const Argument* arguments) {
        const auto call = reinterpret_cast<Result (*)(P...)>(function);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            if constexpr (std::is_void_v<Result>)
                return call(ParameterOf<std::remove_cvref_t<P>>::value(arguments[I])...), 0.0;
            else
                return call(ParameterOf<std::remove_cvref_t<P>>::value(arguments[I])...);
        }(std::index_sequence_for<P...>{});
    }
};

template <class Result, class... P>
Overload overload(Result (*function)(P...)) {
    using Of = Signature<Result, P...>;
    return {reinterpret_cast<void (*)()>(function), &Of::make, Of::kParameters, Of::kCount,
            !std::is_void_v<Result>};
}

// A kernel's name and its functions, which stay as long as the process.
struct Native {
    std::string name;
    std::array<Overload, 2> overloads;
    int count;
};

// Adds a kernel to the module.
class KernelRegistrar {
  public:
    template <class... Functions>
    KernelRegistrar(std::string name, Functions... functions)
        : KernelRegistrar(
              Native{std::move(name), {overload(functions)...}, int(sizeof...(functions))}) {}

  private:
    explicit KernelRegistrar(Native native);
};

// Adds every kernel that is registered.
void bind_kernels(nb::module_& m);

// The name of the kernel that this thread called last.
extern HANDGRAD_THREAD_LOCAL const char* kernel_in_call;

// Makes a call of `kernel`, a kernel of this module, with these arguments and the settings of this
// thread. Returns a new reference. Throws what the kernel throws, and nb::type_error where an
// argument does not fit.
PyObject* make_call(PyObject* kernel, PyObject* const* arguments, Py_ssize_t count);

}  // namespace handgrad
