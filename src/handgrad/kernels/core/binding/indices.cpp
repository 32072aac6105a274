// A copy of indices, so that what a cache keeps is its own. It is a kernel as others are, so that a
// replay repeats it.
#include <algorithm>

#include "core/binding/binding.h"
#include "core/binding/check.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) {
    m.def(
        "copy_indices",
        [](Indices indices, Out<std::int64_t> copy) {
            Check("copy_indices").values("copy", copy, indices.size());
            std::copy_n(indices.data(), indices.size(), copy.data());
        },
        "indices"_a, "copy"_a);
});

}  // namespace
}  // namespace handgrad
