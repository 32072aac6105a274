// Sigmoid: y = 1/(1 + exp(−x)).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_activation<Sigmoid>(m, "sigmoid"); });

}  // namespace
}  // namespace handgrad
