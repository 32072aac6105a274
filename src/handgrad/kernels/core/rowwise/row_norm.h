// Normalisation of rows, forward and backward: layer_norm, rms_norm and standardize.
//
//   x̂ = (x − mean) · inv_std,  y = γ x̂ + β
//   g = dy γ,  dx = (g − mean(g) − x̂ mean(g x̂)) · inv_std,  dγ = Σ dy x̂,  dβ = Σ dy
// Where rows are not centred (rms_norm), mean is 0 and mean(g) is left out. γ and β may be absent.
// Of each row its mean and inv_std are kept, and x̂ is computed again. A row is read twice, but the
// second time from the cache.
#pragma once

#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {

template <class T, bool kCentred>
void normalize_rows(const T* x, const T* gamma, const T* beta, T* y, T* statistics, long rows,
                    long width, T eps) {
    const KernelScope scope(rows * width);
    const T one_over_width = T(1) / static_cast<T>(width);
    for_rows<T, 1>({rows, width, 1}, {x}, y, [=](long row, auto in, T* out) {
        const T* values = in[0];
        T mean = T(0);
        if (kCentred)
            // A quotient, as the mean of equal values is that value as often as can be.
            mean = reduce_sum<T>(0, width, [=](auto lanes) { return lanes.load(values); }) /
                   static_cast<T>(width);
        const T squares = reduce_sum<T>(0, width, [=](auto lanes) {
            const Vec<T> centred = lanes.load(values) - mean;
            return Vec<T>(centred * centred);
        });
        const T inv_std = T(1) / std::sqrt(squares * one_over_width + eps);
        statistics[2 * row] = mean;
        statistics[2 * row + 1] = inv_std;
        transform<T>(0, width, [=](auto lanes) {
            Vec<T> result = (lanes.load(values) - mean) * inv_std;
            if (gamma != nullptr) result = lanes.load(gamma) * result;
            if (beta != nullptr) result = result + lanes.load(beta);
            lanes.store(out, result);
        });
    });
}

// Any of dx, dgamma and dbeta may be null and is then not computed. `residual`, where given, is
// added to dx.
template <class T, bool kCentred>
void normalize_rows_backward(const T* dy, const T* x, const T* gamma, const T* statistics,
                             const T* residual, T* dx, T* dgamma, T* dbeta, long rows, long width) {
    const KernelScope scope(rows * width);
    const bool parameters = dgamma != nullptr || dbeta != nullptr;
    const T one_over_width = T(1) / static_cast<T>(width);
    const RowSums<T> parts(rows, width, parameters ? 2 * width : 0);
    parts.run([=](long row, T* dgamma_part) {
        T* dbeta_part = dgamma_part + width;
        const T* dy_row = dy + row * width;
        const T* x_row = x + row * width;
        const T mean = statistics[2 * row], inv_std = statistics[2 * row + 1];
        auto g = [=](auto lanes) {
            const Vec<T> given = lanes.load(dy_row);
            return gamma != nullptr ? Vec<T>(given * lanes.load(gamma)) : given;
        };
        auto x_hat = [=](auto lanes) { return Vec<T>((lanes.load(x_row) - mean) * inv_std); };
        const auto [sum_g, sum_g_x_hat] = reduce_sums<T, 2>(0, width, [=](auto lanes) {
            if (parameters) {
                const Vec<T> given = lanes.load(dy_row);
                lanes.store(dgamma_part, lanes.load(dgamma_part) + given * x_hat(lanes));
                lanes.store(dbeta_part, lanes.load(dbeta_part) + given);
            }
            return std::array<Vec<T>, 2>{g(lanes), Vec<T>(g(lanes) * x_hat(lanes))};
        });
        if (dx == nullptr) return;
        const T mean_g = kCentred ? sum_g * one_over_width : T(0);
        const T mean_g_x_hat = sum_g_x_hat * one_over_width;
        const T* residual_row = residual == nullptr ? nullptr : residual + row * width;
        T* dx_row = dx + row * width;
        transform<T>(0, width, [=](auto lanes) {
            const Vec<T> found = (g(lanes) - mean_g - x_hat(lanes) * mean_g_x_hat) * inv_std;
            lanes.store(dx_row,
                        residual == nullptr ? found : Vec<T>(lanes.load(residual_row) + found));
        });
    });
    if (dgamma != nullptr) parts.write(dgamma, 0, width);
    if (dbeta != nullptr) parts.write(dbeta, width, width);
}

}  // namespace handgrad
