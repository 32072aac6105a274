// Plain sums of arrays.
#include "core/binding.h"
#include "core/elementwise.h"
#include "core/gil.h"

namespace handgrad {
namespace {

// y = a + b, or a + b + c.
template <class T>
void add_arrays(In<T> a, In<T> b, std::optional<In<T>> c, Out<T> y) {
    const WithoutGil unlocked(y.size());
    if (c)
        map<T>(y.size(), [a = a.data(), b = b.data(), c = c->data(), y = y.data()](auto lanes) {
            lanes.store(y, lanes.load(a) + lanes.load(b) + lanes.load(c));
        });
    else
        map<T>(y.size(), [a = a.data(), b = b.data(), y = y.data()](auto lanes) {
            lanes.store(y, lanes.load(a) + lanes.load(b));
        });
}

template <class T>
void bind(nb::module_& m) {
    m.def("add_arrays", &add_arrays<T>, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
