// A copy of indices, so that what a cache keeps is its own. It is a kernel as others are, so that a
// replay repeats it.
#include <algorithm>

#include "core/binding/check.h"
#include "core/binding/kernel.h"

namespace handgrad {
namespace {

void copy_indices(Indices indices, Out<std::int64_t> copy) {
    Check().values("copy", copy, indices.size());
    std::copy_n(indices.data(), indices.size(), copy.data());
}

const KernelRegistrar registrar("copy_indices", copy_indices);

}  // namespace
}  // namespace handgrad
