#include "core/recurrent/recurrence.h"

#include "core/recurrent/backward.h"
#include "core/recurrent/forward.h"

namespace handgrad::recurrence {

template void step_forward(const Inputs<float>&, const Sequences&, const Cell<float>&, float*);
template void step_forward(const Inputs<double>&, const Sequences&, const Cell<double>&, double*);
template void step_backward(const Inputs<float>&, const Sequences&, const Cell<float>&,
                            const float*, const float*, const float*, const Gradients<float>&);
template void step_backward(const Inputs<double>&, const Sequences&, const Cell<double>&,
                            const double*, const double*, const double*, const Gradients<double>&);

}  // namespace handgrad::recurrence
