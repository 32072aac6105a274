// LSTM: what a step does between its products; the steps themselves are in
// core/recurrent/recurrence.h.
#include "core/recurrent/recurrence.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {
namespace {

using namespace recurrence;

// Sums and gate gradients stand in the order i, f, g, o.
template <class T>
struct LstmCell {
    static constexpr CellSlabs kSlabs{.slabs = 4, .sums = 4, .gate_gradients = 4, .shared = 4};

    long hidden;
    Kept<T> gates;  // (rows, 4H)
    Kept<T> c;      // (rows, H)
    const T* c0;

    template <class Lanes>
    Vec<T> step(Lanes lanes, const StepRow& at, const std::array<Vec<T>, 4>& a) const {
        const Vec<T> i = sigmoid(a[0]), f = sigmoid(a[1]), g = tanh(a[2]), o = sigmoid(a[3]);
        const Vec<T> c_before = load_or_zero<T>(lanes, kept_before<T>(at, c.at(0), c0, hidden));
        const Vec<T> c_here = f * c_before + i * g;
        gates.set(at.row, 0, lanes, i);
        gates.set(at.row, hidden, lanes, f);
        gates.set(at.row, 2 * hidden, lanes, g);
        gates.set(at.row, 3 * hidden, lanes, o);
        lanes.store(c.at(at.row), c_here);
        return o * tanh(c_here);
    }

    template <class Lanes>
    Vec<T> gate_gradients(Lanes lanes, const StepRow& at, Vec<T> dm, Vec<T>& dc,
                          std::array<Vec<T>, 4>& da, T* m) const {
        const T* row = gates.at(at.row);
        const Vec<T> i = lanes.load(row), f = lanes.load(row + hidden);
        const Vec<T> g = lanes.load(row + 2 * hidden), o = lanes.load(row + 3 * hidden);
        const Vec<T> c_before = load_or_zero<T>(lanes, kept_before<T>(at, c.at(0), c0, hidden));
        const Vec<T> tanh_c = tanh(lanes.load(c.at(at.row)));
        const Vec<T> dc_here = dc + dm * o * (T(1) - tanh_c * tanh_c);
        da[0] = dc_here * g * i * (T(1) - i);
        da[1] = dc_here * c_before * f * (T(1) - f);
        da[2] = dc_here * i * (T(1) - g * g);
        da[3] = dm * tanh_c * o * (T(1) - o);
        dc = dc_here * f;
        if (m != nullptr) lanes.store(m, o * tanh_c);
        return Vec<T>{};
    }
};

template <class T>
void lstm_forward(In<T> x, In<T> weight_ih, In<T> weight_hh, std::optional<In<T>> bias_ih,
                  std::optional<In<T>> bias_hh, std::optional<In<T>> weight_hr,
                  std::optional<In<T>> h0, std::optional<In<T>> c0, std::optional<Indices> lengths,
                  bool reverse, Out<T> y, Out<T> h_n, Out<T> c_n, Out<T> gates, Out<T> c) {
    const Check check;
    LayerSizes sizes =
        checked_layer<T>(check, 4, x, weight_ih, weight_hh, weight_hr, bias_ih, bias_hh, h0);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    check.shape("h_n", h_n, sizes.batch, sizes.size);
    check.shape("c0", c0, sizes.batch, sizes.hidden);
    check.shape("c_n", c_n, sizes.batch, sizes.hidden);
    const Inputs<T> in(4, x, weight_ih, weight_hh, weight_hr, bias_ih, bias_hh, h0, y.data());
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(gates, sequences.rows(), 4 * in.hidden);
    const Kept<T> states(c, sequences.rows(), in.hidden);
    const LstmCell<T> cell{in.hidden, kept, states, data_or_null(c0)};
    run_forward<T>(in, sequences, cell, h_n.data());
    for (long sorted_index = 0; sorted_index < sequences.batch(); sorted_index++) {
        const long t = sequences.last(sorted_index);
        write_final<T>(c_n.data(),
                       t < 0 ? nullptr : c.data() + sequences.row(sorted_index, t) * in.hidden,
                       cell.c0, sequences.sequence(sorted_index), in.hidden);
    }
}

template <class T>
void lstm_backward(In<T> dy, std::optional<In<T>> dh_n, std::optional<In<T>> dc_n, In<T> x,
                   In<T> weight_ih, In<T> weight_hh, std::optional<In<T>> weight_hr,
                   std::optional<In<T>> h0, std::optional<In<T>> c0, std::optional<Indices> lengths,
                   bool reverse, In<T> y, In<T> gates, In<T> c, std::optional<Out<T>> dx,
                   std::optional<Out<T>> dweight_ih, std::optional<Out<T>> dweight_hh,
                   std::optional<Out<T>> dbias_ih, std::optional<Out<T>> dbias_hh,
                   std::optional<Out<T>> dweight_hr, std::optional<Out<T>> dh0,
                   std::optional<Out<T>> dc0) {
    const Check check;
    LayerSizes sizes = checked_layer<T>(check, 4, x, weight_ih, weight_hh, weight_hr, {}, {}, h0);
    check.shape("dy", dy, sizes.batch, sizes.steps, sizes.size);
    check.shape("dh_n", dh_n, sizes.batch, sizes.size);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    check.shape("dc_n", dc_n, sizes.batch, sizes.hidden);
    check.shape("c0", c0, sizes.batch, sizes.hidden);
    T* h = const_cast<T*>(y.data());
    const Inputs<T> in(4, x, weight_ih, weight_hh, weight_hr, {}, {}, h0, h);
    const Gradients<T> out(check, sizes, dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, dweight_hr,
                           dh0, dc0);
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(gates, sequences.rows(), 4 * in.hidden);
    const Kept<T> states(c, sequences.rows(), in.hidden);
    const LstmCell<T> cell{in.hidden, kept, states, data_or_null(c0)};
    run_backward<T>(in, sequences, cell, dy.data(), data_or_null(dh_n), data_or_null(dc_n), out);
}

const KernelRegistrar registrars[] = {
    {"lstm_forward", lstm_forward<float>, lstm_forward<double>},
    {"lstm_backward", lstm_backward<float>, lstm_backward<double>},
};

}  // namespace
}  // namespace handgrad
