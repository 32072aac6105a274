// GRU: what a step does between its products; the steps themselves are in
// core/recurrent/recurrence.h.
#include "core/recurrent/recurrence.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {
namespace {

using namespace recurrence;

// Sums: those of r and z, the part of n from x, and its part from h, which is u. Gate gradients:
// those of r, z, n, and that of u.
template <class T>
struct GruCell {
    static constexpr CellSlabs kSlabs{.slabs = 3,
                                      .sums = 4,
                                      .gate_gradients = 4,
                                      .shared = 2,
                                      .from_x = {0, 1, 2, -1},
                                      .from_h = {0, 1, -1, 2},
                                      .to_h = {0, 1, 3},
                                      .direct = true};

    const Inputs<T>& in;
    Kept<T> gates;  // (rows, 4H): r, z, n, u

    template <class Lanes>
    Vec<T> step(Lanes lanes, const StepRow& at, const std::array<Vec<T>, 4>& a) const {
        const Vec<T> r = sigmoid(a[0]), z = sigmoid(a[1]), u = a[3];
        const Vec<T> n = tanh(Vec<T>(a[2] + r * u));
        gates.set(at.row, 0, lanes, r);
        gates.set(at.row, in.hidden, lanes, z);
        gates.set(at.row, 2 * in.hidden, lanes, n);
        gates.set(at.row, 3 * in.hidden, lanes, u);
        return (T(1) - z) * n + z * load_or_zero<T>(lanes, in.h_before(at));
    }

    template <class Lanes>
    Vec<T> gate_gradients(Lanes lanes, const StepRow& at, Vec<T> dh, Vec<T>&,
                          std::array<Vec<T>, 4>& da, T*) const {
        const T* row = gates.at(at.row);
        const Vec<T> r = lanes.load(row), z = lanes.load(row + in.hidden);
        const Vec<T> n = lanes.load(row + 2 * in.hidden), u = lanes.load(row + 3 * in.hidden);
        const Vec<T> h_before = load_or_zero<T>(lanes, in.h_before(at));
        const Vec<T> da_n = dh * (T(1) - z) * (T(1) - n * n);
        da[0] = da_n * u * r * (T(1) - r);
        da[1] = dh * (h_before - n) * z * (T(1) - z);
        da[2] = da_n;
        da[3] = da_n * r;
        return dh * z;
    }
};

template <class T>
void gru_forward(In<T> x, In<T> weight_ih, In<T> weight_hh, std::optional<In<T>> bias_ih,
                 std::optional<In<T>> bias_hh, std::optional<In<T>> h0,
                 std::optional<Indices> lengths, bool reverse, Out<T> y, Out<T> h_n, Out<T> gates) {
    const Check check;
    LayerSizes sizes =
        checked_layer<T>(check, 3, x, weight_ih, weight_hh, {}, bias_ih, bias_hh, h0);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    check.shape("h_n", h_n, sizes.batch, sizes.size);
    const Inputs<T> in(3, x, weight_ih, weight_hh, {}, bias_ih, bias_hh, h0, y.data());
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(gates, sequences.rows(), 4 * in.hidden);
    run_forward<T>(in, sequences, GruCell<T>{in, kept}, h_n.data());
}

template <class T>
void gru_backward(In<T> dy, std::optional<In<T>> dh_n, In<T> x, In<T> weight_ih, In<T> weight_hh,
                  std::optional<In<T>> h0, std::optional<Indices> lengths, bool reverse, In<T> y,
                  In<T> gates, std::optional<Out<T>> dx, std::optional<Out<T>> dweight_ih,
                  std::optional<Out<T>> dweight_hh, std::optional<Out<T>> dbias_ih,
                  std::optional<Out<T>> dbias_hh, std::optional<Out<T>> dh0) {
    const Check check;
    LayerSizes sizes = checked_layer<T>(check, 3, x, weight_ih, weight_hh, {}, {}, {}, h0);
    check.shape("dy", dy, sizes.batch, sizes.steps, sizes.size);
    check.shape("dh_n", dh_n, sizes.batch, sizes.size);
    check.shape("y", y, sizes.batch, sizes.steps, sizes.size);
    const Inputs<T> in(3, x, weight_ih, weight_hh, {}, {}, {}, h0, const_cast<T*>(y.data()));
    const Gradients<T> out(check, sizes, dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, {}, dh0,
                           {});
    const auto* checked = checked_lengths(lengths, x.shape(0), x.shape(1));
    const KernelScope scope;
    const Sequences sequences(x.shape(0), x.shape(1), checked, reverse);
    const Kept<T> kept(gates, sequences.rows(), 4 * in.hidden);
    const GruCell<T> cell{in, kept};
    run_backward<T>(in, sequences, cell, dy.data(), data_or_null(dh_n), nullptr, out);
}

const KernelRegistrar registrars[] = {
    {"gru_forward", gru_forward<float>, gru_forward<double>},
    {"gru_backward", gru_backward<float>, gru_backward<double>},
};

}  // namespace
}  // namespace handgrad
