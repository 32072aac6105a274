// An activation as an op of its own: forward and backward of any of core/elementwise/activation.h,
// bound by name.
#pragma once

#include <optional>
#include <string>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/activation.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"
#include "core/simd/subnormals.h"

namespace handgrad {

template <class T, class F>
void activation_forward(const Check& check, const F& f, In<T> x, Out<T> y) {
    check.values("y", y, x.size());
    const long count = static_cast<long>(x.size());
    const WithoutGil unlocked(count);
    const auto body = [f, x = x.data(), y = y.data()](auto lanes) {
        lanes.store(y, f.value(lanes.load(x)));
    };
    // If only y is kept, backward has to find the side of the kink in it.
    std::optional<FlushSubnormals> flushed;
    if constexpr (!(F::kHasKink && F::kFromOutput)) flushed.emplace();
    parallel_transform<T>(count, body);
}

// `kept` is the output or the input, as F::kFromOutput says.
template <class T, class F>
void activation_backward(const Check& check, const F& f, In<T> dy, In<T> kept, Out<T> dx) {
    check.values("kept", kept, dy.size());
    check.values("dx", dx, dy.size());
    const long count = static_cast<long>(dy.size());
    const WithoutGil unlocked(count);
    const auto body = [f, dy = dy.data(), kept = kept.data(), dx = dx.data()](auto lanes) {
        lanes.store(dx, f.gradient(lanes.load(dy), lanes.load(kept)));
    };
    std::optional<FlushSubnormals> flushed;
    if constexpr (!F::kHasKink) flushed.emplace();
    parallel_transform<T>(count, body);
}

// `<name>_forward(x, y)` and `<name>_backward(dy, kept, dx)` for both types; options, such as a
// slope, follow as numbers.
template <template <class> class F, class... Options>
void bind_activation(nb::module_& m, const char* name) {
    auto bind = [&]<class T>(T) {
        m.def((name + std::string("_forward")).c_str(),
              [name](In<T> x, Out<T> y, Options... options) {
                  activation_forward(Check(name), F<T>{static_cast<T>(options)...}, x, y);
              });
        m.def((name + std::string("_backward")).c_str(),
              [name](In<T> dy, In<T> kept, Out<T> dx, Options... options) {
                  activation_backward(Check(name), F<T>{static_cast<T>(options)...}, dy, kept, dx);
              });
    };
    bind(float{});
    bind(double{});
}

}  // namespace handgrad
