// Optimizer steps: one sweep over parameters, gradients and state, in place and in parallel.
#pragma once

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {

// step(parameter, gradient, slots...) changes references to vectors of all values, in place. The
// gradient is multiplied by `scale` on the way: clipping takes no pass of its own. Subnormal values
// become 0: without gradients moments decay to them and would stay there.
template <class T, class Step, class... Slots>
void sweep(const Check& check, const Step& step, double scale, Out<T> parameter, In<T> gradient,
           Slots... slots) {
    check.values("gradient", gradient, parameter.size());
    (check.values("a moment", slots, parameter.size()), ...);
    const KernelScope scope(parameter.size());
    const Uninterrupted whole;
    const T factor = T(scale);
    parallel_transform<T>(parameter.size(),
                          [&, p = parameter.data(), g = gradient.data()](auto lanes) {
                              Vec<T> value = lanes.load(p);
                              auto with = [&](auto... state) {
                                  step(value, Vec<T>(factor * lanes.load(g)), state...);
                                  (lanes.store(slots.data(), state), ...);
                              };
                              with(lanes.load(slots.data())...);
                              lanes.store(p, value);
                          });
}

}  // namespace handgrad
