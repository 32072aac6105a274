// A gated linear unit as an op: y = f(a) b of the halves of each row, x = [a, b].
//
//   da = dy b f′(a),  db = dy f(a)
#pragma once

#include <string>

#include "core/binding/check.h"
#include "core/binding/kernel.h"
#include "core/elementwise/activation.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {

// body(row of x, offset of the row of y) for each row; that of y has half the width.
template <class T, class Body>
void each_gated_row(const T* x, long values, long half, const Body& body) {
    if (values == 0) return;
    const KernelScope scope(values);
    parallel_for(values / (2 * half), rows_per_chunk(2 * half), [=](long begin, long end) {
        for (long row = begin; row < end; row++) body(x + row * 2 * half, row * half);
    });
}

template <template <class> class F, class T>
void gated_forward(In<T> x, Out<T> y) {
    const F<T> f{};
    const Check check;
    Size rows{"rows"}, size{"D"};
    check.shape("y", y, several(rows), size);
    const long half = size;
    check.shape("x", x, several(rows), check.product("x", 2, half));
    each_gated_row(x.data(), x.size(), half, [=, y = y.data()](const T* a, long at) {
        transform<T>(0, half, [=](auto lanes) {
            lanes.store(y + at, f.value(lanes.load(a)) * lanes.load(a + half));
        });
    });
}

template <template <class> class F, class T>
void gated_backward(In<T> dy, In<T> x, Out<T> dx) {
    const F<T> f{};
    const Check check;
    Size rows{"rows"}, size{"D"};
    check.shape("dy", dy, several(rows), size);
    const long half = size;
    check.shape("x", x, several(rows), check.product("x", 2, half));
    check.values("dx", dx, x.size());
    each_gated_row(
        x.data(), x.size(), half, [=, dy = dy.data(), dx = dx.data()](const T* a, long at) {
            T* da = dx + 2 * at;
            transform<T>(0, half, [=](auto lanes) {
                const Vec<T> given = lanes.load(dy + at), through = lanes.load(a);
                lanes.store(da, f.gradient(Vec<T>(given * lanes.load(a + half)), through));
                lanes.store(da + half, given * f.value(through));
            });
        });
}

// `<name>_forward(x, y)` and `<name>_backward(dy, x, dx)` for both types.
template <template <class> class F>
struct GatedOp {
    explicit GatedOp(const std::string& name)
        : forward(name + "_forward", gated_forward<F, float>, gated_forward<F, double>),
          backward(name + "_backward", gated_backward<F, float>, gated_backward<F, double>) {}
    KernelRegistrar forward, backward;
};

}  // namespace handgrad
