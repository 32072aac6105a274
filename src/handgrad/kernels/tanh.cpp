// Tanh.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Tanh> tanh_op("tanh");

}  // namespace
}  // namespace handgrad
