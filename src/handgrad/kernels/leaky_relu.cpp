// Leaky ReLU: y = x where x > 0, else slope · x.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) {
    bind_activation<LeakyRelu, double>(m, "leaky_relu");
});

}  // namespace
}  // namespace handgrad
