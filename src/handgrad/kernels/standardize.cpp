// Standardisation: y = (x − μ)/√(σ² + eps) over each row; the Python side brings the axes together.
#include "core/rowwise/row_norm.h"

namespace handgrad {
namespace {

template <class T>
void standardize_forward(In<T> x, Out<T> y, Out<T> statistics, long width, double eps) {
    const Check check;
    Size rows{"N"};
    check.shape("statistics", statistics, several(rows), 2);
    check.values("x", x, rows, width);
    check.values("y", y, rows, width);
    normalize_rows<T, true>(x.data(), nullptr, nullptr, y.data(), statistics.data(), rows, width,
                            T(eps));
}

template <class T>
void standardize_backward(In<T> dy, In<T> x, In<T> statistics, Out<T> dx, long width) {
    const Check check;
    Size rows{"N"};
    check.shape("statistics", statistics, several(rows), 2);
    check.values("x", x, rows, width);
    check.values("dy", dy, rows, width);
    check.values("dx", dx, rows, width);
    normalize_rows_backward<T, true>(dy.data(), x.data(), nullptr, statistics.data(), nullptr,
                                     dx.data(), nullptr, nullptr, rows, width);
}

const KernelRegistrar registrars[] = {
    {"standardize_forward", standardize_forward<float>, standardize_forward<double>},
    {"standardize_backward", standardize_backward<float>, standardize_backward<double>},
};

}  // namespace
}  // namespace handgrad
