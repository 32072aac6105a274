// RNN: what a step does between its products; the steps themselves are in
// core/recurrent/recurrence.h.
#include "core/elementwise/activation.h"
#include "core/recurrent/recurrence.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

using namespace recurrence;

template <class T, class F>
struct RnnCell {
    static constexpr CellSlabs kSlabs{.slabs = 1, .sums = 1, .gate_gradients = 1, .shared = 1};

    const Inputs<T>& in;

    template <class Lanes>
    Vec<T> step(Lanes, const StepRow&, const std::array<Vec<T>, 1>& a) const {
        return F{}.value(a[0]);
    }

    template <class Lanes>
    Vec<T> gate_gradients(Lanes lanes, const StepRow& at, Vec<T> dh, Vec<T>&,
                          std::array<Vec<T>, 1>& da, T*) const {
        // A product even where the slope of relu is 0: of an infinite dh it is NaN, as in the op.
        const Vec<T> one = splat(T(1));
        da[0] = dh * F{}.gradient(one, lanes.load(in.y + at.position * in.hidden));
        return Vec<T>{};
    }
};

template <class T>
void rnn_forward(In<T> x, In<T> weight_ih, In<T> weight_hh, std::optional<In<T>> bias_ih,
                 std::optional<In<T>> bias_hh, std::optional<In<T>> h0,
                 std::optional<Indices> lengths, bool relu, bool reverse, Out<T> y, Out<T> h_n) {
    const Check check;
    LayerSizes sizes =
        checked_layer<T>(check, 1, x, weight_ih, weight_hh, {}, bias_ih, bias_hh, h0);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    check.shape("h_n", h_n, sizes.batch, sizes.size);
    const Inputs<T> in(1, x, weight_ih, weight_hh, {}, bias_ih, bias_hh, h0, y.data());
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    if (relu)
        run_forward<T>(in, sequences, RnnCell<T, Relu<T>>{in}, h_n.data());
    else
        run_forward<T>(in, sequences, RnnCell<T, Tanh<T>>{in}, h_n.data());
}

template <class T>
void rnn_backward(In<T> dy, std::optional<In<T>> dh_n, In<T> x, In<T> weight_ih, In<T> weight_hh,
                  std::optional<In<T>> h0, std::optional<Indices> lengths, bool relu, bool reverse,
                  In<T> y, std::optional<Out<T>> dx, std::optional<Out<T>> dweight_ih,
                  std::optional<Out<T>> dweight_hh, std::optional<Out<T>> dbias_ih,
                  std::optional<Out<T>> dbias_hh, std::optional<Out<T>> dh0) {
    const Check check;
    LayerSizes sizes = checked_layer<T>(check, 1, x, weight_ih, weight_hh, {}, {}, {}, h0);
    check.shape("dy", dy, sizes.batch, sizes.steps, sizes.size);
    check.shape("dh_n", dh_n, sizes.batch, sizes.size);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    const Inputs<T> in(1, x, weight_ih, weight_hh, {}, {}, {}, h0, const_cast<T*>(y.data()));
    const Gradients<T> out(check, sizes, dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, {}, dh0,
                           {});
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const auto run = [&](const auto& cell) {
        run_backward<T>(in, sequences, cell, dy.data(), data_or_null(dh_n), nullptr, out);
    };
    if (relu)
        run(RnnCell<T, Relu<T>>{in});
    else
        run(RnnCell<T, Tanh<T>>{in});
}

const KernelRegistrar registrars[] = {
    {"rnn_forward", rnn_forward<float>, rnn_forward<double>},
    {"rnn_backward", rnn_backward<float>, rnn_backward<double>},
};

}  // namespace
}  // namespace handgrad
