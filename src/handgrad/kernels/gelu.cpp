// GELU: y = x Φ(x), exact and in its tanh form.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Gelu> gelu_op("gelu");
const ActivationOp<GeluTanh> gelu_tanh_op("gelu_tanh");

}  // namespace
}  // namespace handgrad
