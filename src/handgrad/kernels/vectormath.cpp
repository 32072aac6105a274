// The functions of core/simd/vectormath.h on arrays, for the test of their precision.
#include "core/simd/vectormath.h"

#include "core/binding/check.h"
#include "core/binding/kernel.h"
#include "core/elementwise/elementwise.h"

namespace handgrad {
namespace {

template <class T, Vec<T> (*function)(Vec<T>)>
void apply(In<T> x, Out<T> y) {
    Check().values("y", y, x.size());
    parallel_transform<T>(x.size(), [x = x.data(), y = y.data()](auto lanes) {
        lanes.store(y, function(lanes.load(x)));
    });
}

const KernelRegistrar registrars[] = {
    {"vector_exp", apply<float, exp>, apply<double, exp>},
    {"vector_log", apply<float, log>, apply<double, log>},
    {"vector_log1p", apply<float, log1p>, apply<double, log1p>},
    {"vector_tanh", apply<float, tanh>, apply<double, tanh>},
    {"vector_sigmoid", apply<float, sigmoid>, apply<double, sigmoid>},
    {"vector_erf", apply<float, erf>, apply<double, erf>},
    {"vector_sin", apply<float, sin>, apply<double, sin>},
    {"vector_cos", apply<float, cos>, apply<double, cos>},
    {"vector_reciprocal", apply<float, reciprocal>, apply<double, reciprocal>},
};

}  // namespace
}  // namespace handgrad
