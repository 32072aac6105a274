// RMS normalisation: y = γ x/√(mean(x²) + eps) over each row.
#include "core/rowwise/row_norm.h"

namespace handgrad {
namespace {

template <class T>
void rms_norm_forward(In<T> x, In<T> gamma, Out<T> y, Out<T> statistics, double eps) {
    const Check check;
    Size rows{"N"}, width{"D"};
    check.shape("x", x, several(rows), width);
    check.shape("gamma", gamma, width);
    check.shape("y", y, several(rows), width);
    check.values("statistics", statistics, rows, 2);
    normalize_rows<T, false>(x.data(), gamma.data(), nullptr, y.data(), statistics.data(), rows,
                             width, T(eps));
}

template <class T>
void rms_norm_backward(In<T> dy, In<T> x, In<T> gamma, In<T> statistics,
                       std::optional<In<T>> residual, std::optional<Out<T>> dx,
                       std::optional<Out<T>> dgamma) {
    const Check check;
    Size rows{"N"}, width{"D"};
    check.shape("x", x, several(rows), width);
    check.shape("dy", dy, several(rows), width);
    check.shape("gamma", gamma, width);
    check.values("statistics", statistics, rows, 2);
    check.values("residual", residual, rows, width);
    check.values("dx", dx, rows, width);
    check.shape("dgamma", dgamma, width);
    normalize_rows_backward<T, false>(dy.data(), x.data(), gamma.data(), statistics.data(),
                                      data_or_null(residual), data_or_null(dx),
                                      data_or_null(dgamma), nullptr, rows, width);
}

const KernelRegistrar registrars[] = {
    {"rms_norm_forward", rms_norm_forward<float>, rms_norm_forward<double>},
    {"rms_norm_backward", rms_norm_backward<float>, rms_norm_backward<double>},
};

}  // namespace
}  // namespace handgrad
