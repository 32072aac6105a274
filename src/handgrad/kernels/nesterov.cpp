// Nesterov: μ = βμ + g,  p = p − lr · (g + βμ), with g = ∂L/∂p + λp.
#include "core/elementwise/sweep.h"

namespace handgrad {
namespace {

template <class T>
void nesterov(Out<T> parameter, In<T> gradient, Out<T> velocity, double lr, double momentum,
              double weight_decay, double scale) {
    const T rate = T(lr), decay = T(weight_decay), keep = T(momentum);
    sweep<T>(
        Check(),
        [=](Vec<T>& p, Vec<T> g, Vec<T>& velocity) {
            g += decay * p;
            velocity = keep * velocity + g;
            p -= rate * (g + keep * velocity);
        },
        scale, parameter, gradient, velocity);
}

const KernelRegistrar registrar("nesterov", nesterov<float>, nesterov<double>);

}  // namespace
}  // namespace handgrad
