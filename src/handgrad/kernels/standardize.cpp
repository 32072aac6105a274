// Standardisation: y = (x − μ)/√(σ² + eps) over each row; the Python side brings the axes together.
#include "core/row_norm.h"

namespace handgrad {
namespace {

template <class T>
void bind(nb::module_& m) {
    m.def("standardize_forward", [](In<T> x, Out<T> y, Out<T> statistics, long width, double eps) {
        normalize_rows<T, true>(x.data(), nullptr, nullptr, y.data(), statistics.data(),
                                x.size() / width, width, T(eps));
    });
    m.def("standardize_backward", [](In<T> dy, In<T> x, In<T> statistics, Out<T> dx, long width) {
        normalize_rows_backward<T, true>(dy.data(), x.data(), nullptr, statistics.data(), nullptr,
                                         dx.data(), nullptr, nullptr, dy.size() / width, width);
    });
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
