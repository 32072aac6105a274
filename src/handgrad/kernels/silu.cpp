// SiLU: y = x σ(x).
#include "core/elementwise/activation_op.h"

namespace handgrad {
namespace {

const ActivationOp<Silu> silu_op("silu");

}  // namespace
}  // namespace handgrad
