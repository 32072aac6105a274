// What every binding needs: arrays in, arrays out, no arithmetic.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace nb = nanobind;
using namespace nb::literals;

namespace handgrad {

// A C-contiguous array that is read, and one that is written.
template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

// Kernel files add their functions to the module: one `Registrar` each, no central list.
struct Registrar {
    explicit Registrar(void (*bind)(nb::module_&));
};

}  // namespace handgrad
