// Sine.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Sin> sin_op("sin");

}  // namespace
}  // namespace handgrad
