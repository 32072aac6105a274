// GEGLU: y = a Φ(a) b of the two halves of each row, exact and in its tanh form.
#include "core/elementwise/gated_op.h"

namespace handgrad {
namespace {

const GatedOp<Gelu> geglu_op("geglu");
const GatedOp<GeluTanh> geglu_tanh_op("geglu_tanh");

}  // namespace
}  // namespace handgrad
