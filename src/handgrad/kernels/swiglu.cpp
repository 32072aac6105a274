// SwiGLU: y = a σ(a) b of the two halves of each row.
#include "core/elementwise/gated_op.h"

namespace handgrad {
namespace {

const GatedOp<Silu> swiglu_op("swiglu");

}  // namespace
}  // namespace handgrad
