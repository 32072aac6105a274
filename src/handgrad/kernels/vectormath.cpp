// The functions of core/simd/vectormath.h on arrays, for the test of their precision.
#include "core/simd/vectormath.h"

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"

namespace handgrad {
namespace {

template <class T, class F>
void bind_function(nb::module_& m, const char* name, const F& f) {
    m.def(name, [name, f](In<T> x, Out<T> y) {
        Check(name).values("y", y, x.size());
        parallel_transform<T>(x.size(), [=, x = x.data(), y = y.data()](auto lanes) {
            lanes.store(y, f(lanes.load(x)));
        });
    });
}

template <class T>
void bind(nb::module_& m) {
    bind_function<T>(m, "vector_exp", [](Vec<T> x) { return exp(x); });
    bind_function<T>(m, "vector_log", [](Vec<T> x) { return log(x); });
    bind_function<T>(m, "vector_log1p", [](Vec<T> x) { return log1p(x); });
    bind_function<T>(m, "vector_tanh", [](Vec<T> x) { return tanh(x); });
    bind_function<T>(m, "vector_sigmoid", [](Vec<T> x) { return sigmoid(x); });
    bind_function<T>(m, "vector_erf", [](Vec<T> x) { return erf(x); });
    bind_function<T>(m, "vector_sin", [](Vec<T> x) { return sin(x); });
    bind_function<T>(m, "vector_cos", [](Vec<T> x) { return cos(x); });
    bind_function<T>(m, "vector_reciprocal", [](Vec<T> x) { return reciprocal(x); });
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
