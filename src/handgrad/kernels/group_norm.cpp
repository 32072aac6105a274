// Group normalisation: y = γ (x − μ)/√(σ² + eps) + β, μ and σ² of every group of an example.
//
//   g = dy γ,  dx = (g − mean(g) − x̂ mean(g x̂)) · inv_std,  dγ = Σ dy x̂,  dβ = Σ dy
// The channels of a group are neighbours, so a group is one row in memory. Of each row mean and
// inv_std are kept, and x̂ is computed again: forward moves x and y, backward dy, x and dx. γ and β
// belong to channels, of which a row has several, each with `size` values.
#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/rowwise/moments.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// An array (N, C, ...) as rows of one group each.
struct Groups {
    long batch, channels, size, groups;

    long of_group() const { return channels / groups; }
    long width() const { return of_group() * size; }
    long first_channel(long row) const { return row % groups * of_group(); }

    // body(row) for every group of every example.
    template <class Body>
    void each(const Body& body) const {
        parallel_for(batch * groups, rows_per_chunk(width()), [&](long begin, long end) {
            for (long row = begin; row < end; row++) body(row);
        });
    }

    // body(channel, begin, end, of) for values of a row that are one channel's; of(lanes, p) is
    // what stands for their channel in p. Where a channel has one value, for all at once.
    template <class T, class Body>
    void each_channel(const Body& body) const {
        if (size == 1) {
            body(0L, 0L, of_group(), [](auto lanes, const T* p) { return lanes.load(p); });
            return;
        }
        for (long c = 0; c < of_group(); c++)
            body(c, c * size, (c + 1) * size, [c](auto, const T* p) { return splat(p[c]); });
    }
};

template <class T>
void forward(In<T> x, In<T> gamma, In<T> beta, Out<T> y, Out<T> statistics, double eps) {
    const Check check;
    Size n{"N"}, c{"C"}, size{"positions"}, groups{"G"};
    check.shape("x", x, n, c, several(size));
    check.shape("gamma", gamma, c);
    check.shape("beta", beta, c);
    check.shape("y", y, n, c, several(size));
    check.shape("statistics", statistics, n, groups, 2);
    check.divides("G", groups, c);
    const Groups in{n, c, size, groups};
    const KernelScope scope(x.size());
    in.each([&](long row) {
        const T* values = x.data() + row * in.width();
        const Moments m = moments(values, Planes{1, in.width(), in.width()});
        const T mean = T(m.mean), inv_std = T(1 / std::sqrt(m.variance + eps));
        statistics.data()[2 * row] = mean;
        statistics.data()[2 * row + 1] = inv_std;
        const T* gammas = gamma.data() + in.first_channel(row);
        const T* betas = beta.data() + in.first_channel(row);
        T* out = y.data() + row * in.width();
        in.each_channel<T>([=](long, long begin, long end, auto of) {
            transform<T>(begin, end, [=](auto lanes) {
                const Vec<T> x_hat = (lanes.load(values) - mean) * inv_std;
                lanes.store(out, of(lanes, gammas) * x_hat + of(lanes, betas));
            });
        });
    });
}

// target = the sum of rows, a run of them at a time so that no partial sum is of many terms.
template <class T>
void sum_examples(const T* rows, long count, long width, T* target) {
    constexpr long kRun = 64;
    parallel_for(width, std::max(rows_per_chunk(count), 64L), [=](long begin, long end) {
        transform<T>(begin, end, [=](auto lanes) {
            Vec<T> sum{};
            for (long first = 0; first < count; first += kRun) {
                Vec<T> part{};
                for (long n = first; n < std::min(first + kRun, count); n++)
                    part += lanes.load(rows + n * width);
                sum += part;
            }
            lanes.store(target, sum);
        });
    });
}

// Any of dx, dgamma and dbeta may be absent and is then not computed.
template <class T>
void backward(In<T> dy, In<T> x, In<T> gamma, In<T> statistics, std::optional<Out<T>> dx,
              std::optional<Out<T>> dgamma, std::optional<Out<T>> dbeta) {
    const Check check;
    Size n{"N"}, c{"C"}, size{"positions"}, groups{"G"};
    check.shape("x", x, n, c, several(size));
    check.shape("dy", dy, n, c, several(size));
    check.shape("gamma", gamma, c);
    check.shape("statistics", statistics, n, groups, 2);
    check.divides("G", groups, c);
    check.values("dx", dx, x.size());
    check.shape("dgamma", dgamma, c);
    check.shape("dbeta", dbeta, c);
    const Groups in{n, c, size, groups};
    const KernelScope scope(x.size());
    const bool parameters = dgamma || dbeta;
    // Σ dy x̂ and Σ dy over the positions of every example and channel.
    const Workspace<T> parts(parameters ? 2 * in.batch * in.channels : 0);
    T* products = parts.data();
    T* totals = products + in.batch * in.channels;
    in.each([&](long row) {
        const T* dy_row = dy.data() + row * in.width();
        const T* x_row = x.data() + row * in.width();
        const T mean = statistics.data()[2 * row], inv_std = statistics.data()[2 * row + 1];
        const T* gammas = gamma.data() + in.first_channel(row);
        const auto x_hat = [=](auto lanes) { return Vec<T>((lanes.load(x_row) - mean) * inv_std); };
        double sum_g = 0, sum_g_x_hat = 0;
        in.each_channel<T>([&](long c, long begin, long end, auto of) {
            double sum_dy = 0, sum_dy_x_hat = 0;
            const long channel = row * in.of_group() + c;
            Planes{1, end - begin, end - begin}.each_block([&](long from, long to) {
                const auto found = reduce_sums<T, 4>(begin + from, begin + to, [=](auto lanes) {
                    const Vec<T> given = lanes.load(dy_row), product = given * x_hat(lanes);
                    const Vec<T> g = given * of(lanes, gammas);
                    if (parameters && in.size == 1) {
                        lanes.store(products + channel, product);
                        lanes.store(totals + channel, given);
                    }
                    return std::array<Vec<T>, 4>{given, product, g, Vec<T>(g * x_hat(lanes))};
                });
                sum_dy += double(found[0]);
                sum_dy_x_hat += double(found[1]);
                sum_g += double(found[2]);
                sum_g_x_hat += double(found[3]);
            });
            if (parameters && in.size != 1) {
                products[channel] = T(sum_dy_x_hat);
                totals[channel] = T(sum_dy);
            }
        });
        if (!dx) return;
        const double one_over_count = 1.0 / double(in.width());
        const T mean_g = T(sum_g * one_over_count), mean_g_x_hat = T(sum_g_x_hat * one_over_count);
        T* dx_row = dx->data() + row * in.width();
        in.each_channel<T>([=](long, long begin, long end, auto of) {
            transform<T>(begin, end, [=](auto lanes) {
                const Vec<T> g = lanes.load(dy_row) * of(lanes, gammas);
                lanes.store(dx_row, (g - mean_g - x_hat(lanes) * mean_g_x_hat) * inv_std);
            });
        });
    });
    if (dgamma) sum_examples(products, in.batch, in.channels, dgamma->data());
    if (dbeta) sum_examples(totals, in.batch, in.channels, dbeta->data());
}

const KernelRegistrar registrars[] = {
    {"group_norm_forward", forward<float>, forward<double>},
    {"group_norm_backward", backward<float>, backward<double>},
};

}  // namespace
}  // namespace handgrad
