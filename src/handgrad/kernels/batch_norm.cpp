// Batch normalisation: a = γ (x − μ)/√(σ² + eps) + β per channel, y = f(a).
//
//   da = dy f′(a),  dx = γ inv_std (da − mean(da) − x̂ mean(da x̂)),  dγ = Σ da x̂,  dβ = Σ da
// A thread takes a channel at a time: what its first sweep reads, its second finds in the cache.
// Mean and inv_std are kept and x̂ and a are computed again, so forward moves x and y, backward dy,
// x and dx, whatever the activation.
#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/activation.h"
#include "core/rowwise/moments.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// The constants of a channel when it is normalised.
template <class T>
struct Channel {
    T mean, inv_std, gamma, beta;

    Vec<T> x_hat(Vec<T> x) const { return (x - mean) * inv_std; }
    Vec<T> scaled(Vec<T> x_hat) const { return gamma * x_hat + beta; }
};

template <class T, class F>
void normalize(const F& f, const T* x, T* y, const Planes& planes, const Channel<T>& c) {
    planes.each_lanes_again<T>(
        [=](auto lanes) { lanes.store(y, f.value(c.scaled(c.x_hat(lanes.load(x))))); });
}

// dx, where wanted, and {Σ da, Σ da x̂}.
template <class T, class F>
std::array<double, 2> normalize_backward(const F& f, const T* dy, const T* x, T* dx,
                                         const Planes& planes, const Channel<T>& c, bool training) {
    const auto gradient = [=](auto lanes, Vec<T> x_hat) {
        const Vec<T> a = c.scaled(x_hat);
        return f.gradient(lanes.load(dy), f.kFromOutput ? f.value(a) : a);
    };
    double sum_da = 0, sum_da_x_hat = 0;
    planes.each_block([&](long begin, long end) {
        const auto [block_da, block_da_x_hat] = reduce_sums<T, 2>(begin, end, [=](auto lanes) {
            const Vec<T> x_hat = c.x_hat(lanes.load(x)), da = gradient(lanes, x_hat);
            return std::array<Vec<T>, 2>{da, Vec<T>(da * x_hat)};
        });
        sum_da += double(block_da);
        sum_da_x_hat += double(block_da_x_hat);
    });
    const T scale = c.gamma * c.inv_std;
    if (dx != nullptr && !training) {
        // Without the means: these are 0, and 0 times an x̂ that is not finite is NaN.
        planes.each_lanes_again<T>(
            [=](auto lanes) { lanes.store(dx, gradient(lanes, c.x_hat(lanes.load(x))) * scale); });
    } else if (dx != nullptr) {
        const double one_over_count = 1.0 / double(std::max(planes.values(), 1L));
        const T mean_da = T(sum_da * one_over_count),
                mean_da_x_hat = T(sum_da_x_hat * one_over_count);
        planes.each_lanes_again<T>([=](auto lanes) {
            const Vec<T> x_hat = c.x_hat(lanes.load(x)), da = gradient(lanes, x_hat);
            lanes.store(dx, (da - mean_da - x_hat * mean_da_x_hat) * scale);
        });
    }
    return {sum_da, sum_da_x_hat};
}

// body(channel, {its values in each input}, its values in out, their memory) for every channel of
// arrays (N, C, size). The columns of (N, C) are brought together first.
template <class T, std::size_t Inputs, class Body>
void each_channel(long batch, long channels, long size, std::array<const T*, Inputs> in, T* out,
                  const Body& body) {
    const KernelScope scope(batch * channels * size);
    if (size == 1) {
        for_rows<T, Inputs>({1, batch, channels}, in, out, [&](long channel, auto rows, T* row) {
            body(channel, rows, row, Planes{1, batch, batch});
        });
        return;
    }
    const Planes planes{batch, size, channels * size};
    parallel_for(channels, rows_per_chunk(planes.values()), [&](long begin, long end) {
        for (long channel = begin; channel < end; channel++) {
            std::array<const T*, Inputs> rows;
            for (std::size_t k = 0; k < Inputs; k++) rows[k] = in[k] + channel * size;
            body(channel, rows, out == nullptr ? out : out + channel * size, planes);
        }
    });
}

// `statistics` receives mean and inv_std of every channel. In training the running statistics move,
// into the arrays given for that; at inference there are none.
template <class T>
void forward(In<T> x, In<T> gamma, In<T> beta, In<T> running_mean, In<T> running_var, Out<T> y,
             Out<T> statistics, std::optional<Out<T>> next_mean, std::optional<Out<T>> next_var,
             double momentum, double eps, int activation, double slope) {
    const Check check;
    Size n{"N"}, c{"C"}, size{"positions"};
    check.shape("x", x, n, c, several(size));
    check.shape("gamma", gamma, c);
    check.shape("beta", beta, c);
    check.shape("running_mean", running_mean, c);
    check.shape("running_var", running_var, c);
    check.shape("y", y, n, c, several(size));
    check.shape("statistics", statistics, c, 2);
    check.shape("next_mean", next_mean, c);
    check.shape("next_var", next_var, c);
    check.holds(next_mean.has_value() == next_var.has_value(),
                "one of next_mean and next_var is None", "both or none");
    check.range("activation", activation, 0, kLastActivation);
    const bool training = next_mean.has_value();
    each_channel<T, 1>(
        n, c, size, {x.data()}, y.data(),
        [&](long channel, auto rows, T* row, const Planes& planes) {
            Moments m{double(running_mean.data()[channel]), double(running_var.data()[channel])};
            if (training) {
                const Moments before = m;
                const double values = double(planes.values());
                const double rate = values > 0 ? momentum : 0.0;
                m = moments(rows[0], planes);
                const double unbiased = m.variance * values / std::max(values - 1, 1.0);
                next_mean->data()[channel] = T((1 - rate) * before.mean + rate * m.mean);
                next_var->data()[channel] = T((1 - rate) * before.variance + rate * unbiased);
            }
            const T mean = T(m.mean), inv_std = T(1 / std::sqrt(m.variance + eps));
            statistics.data()[2 * channel] = mean;
            statistics.data()[2 * channel + 1] = inv_std;
            const Channel<T> known{mean, inv_std, gamma.data()[channel], beta.data()[channel]};
            with_activation<T>(activation, slope,
                               [&](auto f) { normalize(f, rows[0], row, planes, known); });
        });
}

template <class T>
void backward(In<T> dy, In<T> x, In<T> gamma, In<T> beta, In<T> statistics,
              std::optional<Out<T>> dx, std::optional<Out<T>> dgamma, std::optional<Out<T>> dbeta,
              bool training, int activation, double slope) {
    const Check check;
    Size n{"N"}, c{"C"}, size{"positions"};
    check.shape("x", x, n, c, several(size));
    check.shape("dy", dy, n, c, several(size));
    check.shape("gamma", gamma, c);
    check.shape("beta", beta, c);
    check.shape("statistics", statistics, c, 2);
    check.values("dx", dx, x.size());
    check.shape("dgamma", dgamma, c);
    check.shape("dbeta", dbeta, c);
    check.range("activation", activation, 0, kLastActivation);
    each_channel<T, 2>(
        n, c, size, {dy.data(), x.data()}, dx ? dx->data() : nullptr,
        [&](long channel, auto rows, T* row, const Planes& planes) {
            const Channel<T> known{statistics.data()[2 * channel],
                                   statistics.data()[2 * channel + 1], gamma.data()[channel],
                                   beta.data()[channel]};
            const auto [sum_da, sum_da_x_hat] = with_activation<T>(activation, slope, [&](auto f) {
                return normalize_backward(f, rows[0], rows[1], dx ? row : nullptr, planes, known,
                                          training);
            });
            if (dgamma) dgamma->data()[channel] = T(sum_da_x_hat);
            if (dbeta) dbeta->data()[channel] = T(sum_da);
        });
}

const KernelRegistrar registrars[] = {
    {"batch_norm_forward", forward<float>, forward<double>},
    {"batch_norm_backward", backward<float>, backward<double>},
};

}  // namespace
}  // namespace handgrad
