// Plain sums of arrays.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// y = a + b.
template <class T>
void add_arrays(In<T> a, In<T> b, Out<T> y) {
    const Check check;
    check.values("a", a, y.size());
    check.values("b", b, y.size());
    const KernelScope scope(y.size());
    parallel_transform<T>(y.size(), [a = a.data(), b = b.data(), y = y.data()](auto lanes) {
        lanes.store(y, lanes.load(a) + lanes.load(b));
    });
}

const KernelRegistrar registrar("add_arrays", add_arrays<float>, add_arrays<double>);

}  // namespace
}  // namespace handgrad
