// Squared error: (x − t)², summed or value by value.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
double squared_error_sum(In<T> x, In<T> target) {
    Check().values("target", target, x.size());
    const KernelScope scope(x.size());
    return parallel_reduce_sum<T>(x.size(), [x = x.data(), t = target.data()](auto lanes) {
        const Vec<T> difference = lanes.load(x) - lanes.load(t);
        return Vec<T>(difference * difference);
    });
}

template <class T>
void squared_error_values(In<T> x, In<T> target, Out<T> losses) {
    const Check check;
    check.values("target", target, x.size());
    check.values("losses", losses, x.size());
    const KernelScope scope(x.size());
    parallel_transform<T>(x.size(),
                          [x = x.data(), t = target.data(), losses = losses.data()](auto lanes) {
                              const Vec<T> difference = lanes.load(x) - lanes.load(t);
                              lanes.store(losses, difference * difference);
                          });
}

// dx = dlosses · factor (x − t); without dlosses that factor is 1.
template <class T>
void squared_error_backward(std::optional<In<T>> dlosses, In<T> x, In<T> target, Out<T> dx,
                            double factor) {
    const Check check;
    check.values("dlosses", dlosses, x.size());
    check.values("target", target, x.size());
    check.values("dx", dx, x.size());
    const KernelScope scope(x.size());
    parallel_transform<T>(x.size(), [given = data_or_null(dlosses), x = x.data(), t = target.data(),
                                     dx = dx.data(), factor = T(factor)](auto lanes) {
        const Vec<T> slope = factor * (lanes.load(x) - lanes.load(t));
        lanes.store(dx, given == nullptr ? slope : lanes.load(given) * slope);
    });
}

const KernelRegistrar registrars[] = {
    {"squared_error_sum", squared_error_sum<float>, squared_error_sum<double>},
    {"squared_error_values", squared_error_values<float>, squared_error_values<double>},
    {"squared_error_backward", squared_error_backward<float>, squared_error_backward<double>},
};

}  // namespace
}  // namespace handgrad
