// GEGLU: y = a Φ(a) b of the two halves of each row, exact and in its tanh form.
#include "core/elementwise/gated_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) {
    bind_gated<Gelu>(m, "geglu");
    bind_gated<GeluTanh>(m, "geglu_tanh");
});

}  // namespace
}  // namespace handgrad
