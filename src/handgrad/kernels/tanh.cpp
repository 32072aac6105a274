// Tanh.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_activation<Tanh>(m, "tanh"); });

}  // namespace
}  // namespace handgrad
