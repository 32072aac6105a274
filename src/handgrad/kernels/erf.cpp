// The error function.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_activation<Erf>(m, "erf"); });

}  // namespace
}  // namespace handgrad
