// ReLU: y = max(x, 0).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_activation<Relu>(m, "relu"); });

}  // namespace
}  // namespace handgrad
