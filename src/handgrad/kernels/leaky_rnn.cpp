// Leaky units: what a step does beside its product; the steps themselves are in
// core/recurrent/recurrence.h.
#include "core/recurrent/recurrence.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {
namespace {

using namespace recurrence;

template <class T>
struct LeakyCell {
    static constexpr CellSlabs kSlabs{
        .slabs = 1, .sums = 1, .gate_gradients = 1, .shared = 1, .from_h = {-1}, .direct = true};

    const Inputs<T>& in;
    const T* rates;  // (2, H): alpha, then 1 - alpha, which is rounded by itself
    Kept<T> g;       // (rows, H)

    template <class Lanes>
    Vec<T> step(Lanes lanes, const StepRow& at, const std::array<Vec<T>, 1>& a) const {
        const Vec<T> g_here = tanh(a[0]);
        g.set(at.row, 0, lanes, g_here);
        return lanes.load(rates) * load_or_zero<T>(lanes, in.h_before(at)) +
               lanes.load(rates + in.hidden) * g_here;
    }

    template <class Lanes>
    Vec<T> gate_gradients(Lanes lanes, const StepRow& at, Vec<T> dh, Vec<T>&,
                          std::array<Vec<T>, 1>& da, T*) const {
        const Vec<T> g_here = lanes.load(g.at(at.row));
        da[0] = lanes.load(rates + in.hidden) * dh * (T(1) - g_here * g_here);
        return lanes.load(rates) * dh;
    }
};

template <class T>
void leaky_rnn_forward(In<T> x, In<T> weight_ih, std::optional<In<T>> bias_ih,
                       std::optional<In<T>> h0, In<T> rates, std::optional<Indices> lengths,
                       bool reverse, Out<T> y, Out<T> h_n, Out<T> g) {
    const Check check;
    LayerSizes sizes = checked_layer<T>(check, 1, x, weight_ih, {}, {}, bias_ih, {}, h0);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    check.shape("h_n", h_n, sizes.batch, sizes.size);
    check.shape("rates", rates, 2, sizes.hidden);
    const Inputs<T> in(1, x, weight_ih, {}, {}, bias_ih, {}, h0, y.data());
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(g, sequences.rows(), in.hidden);
    run_forward<T>(in, sequences, LeakyCell<T>{in, rates.data(), kept}, h_n.data());
}

template <class T>
void leaky_rnn_backward(In<T> dy, std::optional<In<T>> dh_n, In<T> x, In<T> weight_ih, In<T> rates,
                        std::optional<Indices> lengths, bool reverse, In<T> g,
                        std::optional<Out<T>> dx, std::optional<Out<T>> dweight_ih,
                        std::optional<Out<T>> dbias_ih, std::optional<Out<T>> dh0) {
    const Check check;
    LayerSizes sizes = checked_layer<T>(check, 1, x, weight_ih, {}, {}, {}, {}, {});
    check.shape("dy", dy, sizes.batch, sizes.steps, sizes.size);
    check.shape("dh_n", dh_n, sizes.batch, sizes.size);
    check.shape("rates", rates, 2, sizes.hidden);
    // The gradients do not depend on the states, so these are not looked at.
    const Inputs<T> in(1, x, weight_ih, {}, {}, {}, {}, {}, nullptr);
    const Gradients<T> out(check, sizes, dx, dweight_ih, {}, dbias_ih, {}, {}, dh0, {});
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(g, sequences.rows(), in.hidden);
    const LeakyCell<T> cell{in, rates.data(), kept};
    run_backward<T>(in, sequences, cell, dy.data(), data_or_null(dh_n), nullptr, out);
}

const KernelRegistrar registrars[] = {
    {"leaky_rnn_forward", leaky_rnn_forward<float>, leaky_rnn_forward<double>},
    {"leaky_rnn_backward", leaky_rnn_backward<float>, leaky_rnn_backward<double>},
};

}  // namespace
}  // namespace handgrad
