// RMSProp: v = αv + (1 − α)g²,  p = p − lr · g/(√v + ε), with g = ∂L/∂p + λp.
#include "core/elementwise/sweep.h"

namespace handgrad {
namespace {

template <class T>
void rmsprop(Out<T> parameter, In<T> gradient, Out<T> v, double lr, double alpha, double eps,
             double weight_decay, double scale) {
    const T rate = T(lr), decay = T(weight_decay), keep = T(alpha), take = T(1 - alpha),
            floor = T(eps);
    sweep<T>(
        Check(),
        [=](Vec<T>& p, Vec<T> g, Vec<T>& v) {
            g += decay * p;
            v = keep * v + take * g * g;
            p -= rate * g / (square_root(v) + floor);
        },
        scale, parameter, gradient, v);
}

const KernelRegistrar registrar("rmsprop", rmsprop<float>, rmsprop<double>);

}  // namespace
}  // namespace handgrad
