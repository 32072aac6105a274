// What a native function demands of its arguments, looked at before memory is reached.
//
// Its first lines say it, in the letters of its documentation:
//     const Check check;
//     Size n{"N"}, heads{"H"}, steps{"T"}, size{"d"};
//     check.shape("x", x, n, heads, steps, size);
//     check.shape("y", y, n, heads, steps, size);
// An array that does not fit, or a setting out of range, is a ValueError of one sentence. A check
// that passes allocates nothing and takes a few nanoseconds.
#pragma once

#include <limits>
#include <optional>

#include "core/binding/kernel.h"

namespace handgrad {

// A size that arrays have in common: the first of them that has the axis says it.
struct Size {
    const char* name;
    long value = -1;
    operator long() const { return value; }
};

// An axis as a check wants it: of a size in common, of a fixed one, or any number of axes that
// come to a size in common together.
struct WantedAxis {
    Size* size;
    long fixed;
    bool several;
};

// Any number of axes in the place of one.
inline WantedAxis several(Size& size) { return {&size, 0, true}; }

namespace detail {

inline WantedAxis wanted(Size& size) { return {&size, 0, false}; }
inline WantedAxis wanted(WantedAxis axis) { return axis; }
inline WantedAxis wanted(long fixed) { return {nullptr, fixed, false}; }

}  // namespace detail

constexpr long kNoLimit = std::numeric_limits<long>::max();

class Check {
  public:
    // The name said is that of the kernel this thread calls, or another one.
    explicit Check(const char* function = kernel_in_call) : function_(function) {}

    // The axes of `array` are these, no more and no fewer.
    template <class Array, class... Wanted>
    void shape(const char* name, const Array& array, Wanted&&... axes) const {
        const WantedAxis wanted[] = {detail::wanted(axes)..., detail::wanted(0L)};
        match(name, array.axes(), wanted, static_cast<int>(sizeof...(axes)));
    }
    template <class Array, class... Wanted>
    void shape(const char* name, const std::optional<Array>& array, Wanted&&... axes) const {
        if (array) shape(name, *array, axes...);
    }

    // `array` has as many values as the product of these says, in whatever shape.
    template <class Array, class... Factors>
    void values(const char* name, const Array& array, Factors... factors) const {
        if (array.size() != product(name, factors...))
            refuse_values(name, array.size(), {factors...});
    }
    template <class Array, class... Factors>
    void values(const char* name, const std::optional<Array>& array, Factors... factors) const {
        if (array) values(name, *array, factors...);
    }

    // Rows of an array with strides lie in one piece. The strides of one without values, or with
    // one value in a row, say nothing.
    template <class Array>
    void rows_in_one_piece(const char* name, const Array& array) const {
        const int last = static_cast<int>(array.ndim()) - 1;
        bool empty = false;
        for (int axis = 0; axis <= last; axis++) empty = empty || array.shape(axis) == 0;
        if (!empty && array.shape(last) > 1 && array.stride(last) != 1) refuse_rows(name);
    }

    // The product of sizes that are not negative; refused where it is more than a long holds.
    template <class... Factors>
    long product(const char* name, Factors... factors) const {
        const long all[] = {static_cast<long>(factors)...};
        long result = 1, smallest = 1;
        bool overflow = false;
        for (const long factor : all) {
            overflow = __builtin_mul_overflow(result, factor, &result) || overflow;
            smallest = factor < smallest ? factor : smallest;
        }
        if (smallest < 0 || (overflow && smallest > 0)) refuse_product(name);
        return smallest == 0 ? 0 : result;
    }

    void range(const char* name, long value, long least, long most = kNoLimit) const {
        if (value < least || value > most) refuse_range(name, value, least, most);
    }

    void divides(const char* name, long value, long whole) const {
        if (value < 1 || whole % value != 0) refuse_divisor(name, value, whole);
    }

    // Throws unless the condition holds; `allowed` says what would have been right.
    void holds(bool condition, const char* found, const char* allowed) const {
        if (!condition) refuse(found, allowed);
    }

  private:
    void match(const char* name, const Axes& found, const WantedAxis* wanted, int count) const {
        int at = 0;
        bool fits = true;
        for (int i = 0; i < count; i++) {
            const WantedAxis& axis = wanted[i];
            long size = 1;
            if (axis.several) {
                const int end = found.ndim - (count - 1 - i);
                for (; at < end; at++) size *= static_cast<long>(found.shape[at]);
            } else if (at < found.ndim) {
                size = static_cast<long>(found.shape[at++]);
            } else {
                fits = false;
                break;
            }
            if (axis.size == nullptr) {
                fits = fits && size == axis.fixed;
            } else {
                if (axis.size->value < 0) axis.size->value = size;
                fits = fits && size == axis.size->value;
            }
        }
        if (!fits || at != found.ndim) refuse_shape(name, found, wanted, count);
    }

    [[noreturn]] void refuse(const char* found, const char* allowed) const;
    [[noreturn]] void refuse_shape(const char* name, const Axes& found, const WantedAxis* wanted,
                                   int count) const;
    [[noreturn]] void refuse_values(const char* name, long found,
                                    std::initializer_list<long> factors) const;
    [[noreturn]] void refuse_rows(const char* name) const;
    [[noreturn]] void refuse_product(const char* name) const;
    [[noreturn]] void refuse_range(const char* name, long value, long least, long most) const;
    [[noreturn]] void refuse_divisor(const char* name, long value, long whole) const;

    const char* function_;
};

}  // namespace handgrad
