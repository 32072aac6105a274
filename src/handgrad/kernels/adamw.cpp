// AdamW: p = (1 − lr λ)p, then m = β₁m + (1 − β₁)g,  v = β₂v + (1 − β₂)g²,  p = p − lr · m̂/(√v̂ +
// ε).
#include "core/elementwise/sweep.h"

namespace handgrad {
namespace {

template <class T>
void adamw(Out<T> parameter, In<T> gradient, Out<T> m, Out<T> v, long step, double lr, double beta1,
           double beta2, double eps, double weight_decay, double scale) {
    const T keep_m = T(beta1), take_m = T(1 - beta1), keep_v = T(beta2), take_v = T(1 - beta2);
    const T rate = T(lr / (1 - std::pow(beta1, step))), floor = T(eps);
    const T correction = T(1 / (1 - std::pow(beta2, step)));
    const T shrink = T(1 - lr * weight_decay);
    sweep<T>(
        Check(),
        [=](Vec<T>& p, Vec<T> g, Vec<T>& m, Vec<T>& v) {
            p = shrink * p;
            m = keep_m * m + take_m * g;
            v = keep_v * v + take_v * g * g;
            p -= rate * m / (square_root(Vec<T>(correction * v)) + floor);
        },
        scale, parameter, gradient, m, v);
}

const KernelRegistrar registrar("adamw", adamw<float>, adamw<double>);

}  // namespace
}  // namespace handgrad
