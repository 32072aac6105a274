// Momentum: μ = βμ + (1 − τ)g,  p = p − lr · μ, with g = ∂L/∂p + λp.
#include "core/elementwise/sweep.h"

namespace handgrad {
namespace {

template <class T>
void momentum(Out<T> parameter, In<T> gradient, Out<T> velocity, double lr, double momentum,
              double dampening, double weight_decay, double scale) {
    const T rate = T(lr), decay = T(weight_decay), keep = T(momentum), take = T(1 - dampening);
    sweep<T>(
        Check(),
        [=](Vec<T>& p, Vec<T> g, Vec<T>& velocity) {
            g += decay * p;
            velocity = keep * velocity + take * g;
            p -= rate * velocity;
        },
        scale, parameter, gradient, velocity);
}

const KernelRegistrar registrar("momentum", momentum<float>, momentum<double>);

}  // namespace
}  // namespace handgrad
