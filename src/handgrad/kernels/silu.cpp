// SiLU: y = x σ(x).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_activation<Silu>(m, "silu"); });

}  // namespace
}  // namespace handgrad
