// SGD: g = ∂L/∂p + λp,  p = p − lr · g.
#include "core/elementwise/sweep.h"

namespace handgrad {
namespace {

template <class T>
void sgd(Out<T> parameter, In<T> gradient, double lr, double weight_decay, double scale) {
    const T rate = T(lr), decay = T(weight_decay);
    sweep<T>(
        Check(), [=](Vec<T>& p, Vec<T> g) { p -= rate * (g + decay * p); }, scale, parameter,
        gradient);
}

const KernelRegistrar registrar("sgd", sgd<float>, sgd<double>);

}  // namespace
}  // namespace handgrad
