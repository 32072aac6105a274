// ReLU: y = max(x, 0).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Relu> relu_op("relu");

}  // namespace
}  // namespace handgrad
