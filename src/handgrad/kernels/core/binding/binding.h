// The types of every binding: arrays in, arrays out, no arithmetic.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>

#include "core/binding/array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace handgrad {

// A C-contiguous array that is read, and one that is written.
template <class T>
using In = Array<const T>;
template <class T>
using Out = Array<T>;
// The same with any strides.
template <class T>
using StridedIn = Strided<const T>;
template <class T>
using StridedOut = Strided<T>;
using Indices = Array<const std::int64_t>;

// Kernel files add their functions to the module: one `Registrar` each, no central list.
struct Registrar {
    explicit Registrar(void (*bind)(nb::module_&));
};

}  // namespace handgrad
