// Sigmoid: y = 1/(1 + exp(−x)).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Sigmoid> sigmoid_op("sigmoid");

}  // namespace
}  // namespace handgrad
