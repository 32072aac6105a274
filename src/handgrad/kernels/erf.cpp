// The error function.
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Erf> erf_op("erf");

}  // namespace
}  // namespace handgrad
