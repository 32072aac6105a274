// Layer normalisation: y = γ (x − μ)/√(σ² + eps) + β over each row.
#include "core/rowwise/row_norm.h"

namespace handgrad {
namespace {

template <class T>
void layer_norm_forward(In<T> x, In<T> gamma, In<T> beta, Out<T> y, Out<T> statistics, double eps) {
    const Check check;
    Size rows{"N"}, width{"D"};
    check.shape("x", x, several(rows), width);
    check.shape("gamma", gamma, width);
    check.shape("beta", beta, width);
    check.shape("y", y, several(rows), width);
    check.values("statistics", statistics, rows, 2);
    normalize_rows<T, true>(x.data(), gamma.data(), beta.data(), y.data(), statistics.data(), rows,
                            width, T(eps));
}

template <class T>
void layer_norm_backward(In<T> dy, In<T> x, In<T> gamma, In<T> statistics,
                         std::optional<In<T>> residual, std::optional<Out<T>> dx,
                         std::optional<Out<T>> dgamma, std::optional<Out<T>> dbeta) {
    const Check check;
    Size rows{"N"}, width{"D"};
    check.shape("x", x, several(rows), width);
    check.shape("dy", dy, several(rows), width);
    check.shape("gamma", gamma, width);
    check.values("statistics", statistics, rows, 2);
    check.values("residual", residual, rows, width);
    check.values("dx", dx, rows, width);
    check.shape("dgamma", dgamma, width);
    check.shape("dbeta", dbeta, width);
    normalize_rows_backward<T, true>(dy.data(), x.data(), gamma.data(), statistics.data(),
                                     data_or_null(residual), data_or_null(dx), data_or_null(dgamma),
                                     data_or_null(dbeta), rows, width);
}

const KernelRegistrar registrars[] = {
    {"layer_norm_forward", layer_norm_forward<float>, layer_norm_forward<double>},
    {"layer_norm_backward", layer_norm_backward<float>, layer_norm_backward<double>},
};

}  // namespace
}  // namespace handgrad
