// GELU: y = x Φ(x), exact and in its tanh form.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) {
    bind_activation<Gelu>(m, "gelu");
    bind_activation<GeluTanh>(m, "gelu_tanh");
});

}  // namespace
}  // namespace handgrad
