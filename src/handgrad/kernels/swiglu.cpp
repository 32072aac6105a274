// SwiGLU: y = a σ(a) b of the two halves of each row.
#include "core/elementwise/gated_op.h"

namespace handgrad {
namespace {

const Registrar registrar([](nb::module_& m) { bind_gated<Silu>(m, "swiglu"); });

}  // namespace
}  // namespace handgrad
