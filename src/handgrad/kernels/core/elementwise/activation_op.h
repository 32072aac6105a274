// An activation as an op of its own: forward and backward of any of core/elementwise/activation.h,
// bound by name.
#pragma once

#include <optional>
#include <string>

#include "core/binding/check.h"
#include "core/binding/kernel.h"
#include "core/elementwise/activation.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"
#include "core/simd/subnormals.h"

namespace handgrad {

template <template <class> class F, class T, class... Options>
void activation_forward(In<T> x, Out<T> y, Options... options) {
    const F<T> f{static_cast<T>(options)...};
    Check().values("y", y, x.size());
    const WithoutGil unlocked(x.size());
    // If only y is kept, backward has to find the side of the kink in it.
    std::optional<FlushSubnormals> flushed;
    if constexpr (!(F<T>::kHasKink && F<T>::kFromOutput)) flushed.emplace();
    parallel_transform<T>(x.size(), [f, x = x.data(), y = y.data()](auto lanes) {
        lanes.store(y, f.value(lanes.load(x)));
    });
}

// `kept` is the output or the input, as kFromOutput says.
template <template <class> class F, class T, class... Options>
void activation_backward(In<T> dy, In<T> kept, Out<T> dx, Options... options) {
    const F<T> f{static_cast<T>(options)...};
    const Check check;
    check.values("kept", kept, dy.size());
    check.values("dx", dx, dy.size());
    const WithoutGil unlocked(dy.size());
    std::optional<FlushSubnormals> flushed;
    if constexpr (!F<T>::kHasKink) flushed.emplace();
    parallel_transform<T>(dy.size(),
                          [f, dy = dy.data(), kept = kept.data(), dx = dx.data()](auto lanes) {
                              lanes.store(dx, f.gradient(lanes.load(dy), lanes.load(kept)));
                          });
}

// `<name>_forward(x, y)` and `<name>_backward(dy, kept, dx)`; options, such as a slope, follow as
// numbers.
template <template <class> class F, class... Options>
struct ActivationOp {
    explicit ActivationOp(const std::string& name)
        : forward(name + "_forward", activation_forward<F, float, Options...>,
                  activation_forward<F, double, Options...>),
          backward(name + "_backward", activation_backward<F, float, Options...>,
                   activation_backward<F, double, Options...>) {}
    KernelRegistrar forward, backward;
};

}  // namespace handgrad
