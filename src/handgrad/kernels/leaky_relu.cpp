// Leaky ReLU: y = x where x > 0, else slope · x.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<LeakyRelu, double> leaky_relu_op("leaky_relu");

}  // namespace
}  // namespace handgrad
