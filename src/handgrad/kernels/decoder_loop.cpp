// The loop over time of models/decoder_loop.py: scores, weights and cell of every step.
//
//     α_j = softmax_i score(s_{j−1}, k_i),  s_j = cell(a_j + Σ_i α_ji m_i, s_{j−1})
// The two products of a step, W_s s for an additive score and W_hh s, are one: a row of `step` is
// [W_s; W_hh] s_{j−1} + [0; b_hh].
//
// Sequences do not wait for each other: a thread takes a few through all steps, as many as fill the
// register tile, and packs the weight once for all of them. Every sum has an order of its own that
// neither their number nor the threads change.
#include "core/binding.h"
#include "core/decoder_cells.h"
#include "core/decoder_scores.h"
#include "core/epilogue.h"
#include "core/packed_matrix.h"

namespace handgrad {
namespace {

// scores become weights; a row of nothing gives 0.
template <class T>
void softmax(T* scores, long count) {
    const T best = largest(scores, count);
    const T highest = best == -std::numeric_limits<T>::infinity() ? T(0) : best;
    const T all = sum<T>(0, count, [=](auto lanes) {
        const Vec<T> power = exp(Vec<T>(lanes.load(scores) - highest));
        lanes.store(scores, power);
        return power;
    });
    const T scale = all == T(0) ? T(1) : T(1) / all;
    for_lanes<T>(0, count, [=](auto lanes) { lanes.store(scores, lanes.load(scores) * scale); });
}

// body(first sequence, number of them), in parallel.
template <class Body>
void for_groups(long batch, const Body& body) {
    const long threads = get_threads();
    const long least = (batch + kTileRows - 1) / kTileRows;
    const long groups = std::min((least + threads - 1) / threads * threads, batch);
    parallel_for(groups, 1, [&](long begin, long end) {
        for (long g = begin; g < end; g++) {
            const long first = g * batch / groups;
            body(first, static_cast<int>((g + 1) * batch / groups - first));
        }
    });
}

// The keys (N, S, A) of a group of sequences, as the score wants them.
template <class T, class Score>
std::array<Keys<T>, kTileRows> prepare(const Score& score, In<T> keys, const std::int64_t* lengths,
                                       long first, int rows, T* powers) {
    const long count = keys.shape(1), size = count * keys.shape(2);
    std::array<Keys<T>, kTileRows> prepared;
    for (int r = 0; r < rows; r++) {
        const long n = first + r;
        prepared[r] =
            score.prepare(keys.data() + n * size, lengths ? lengths[n] : count, powers + n * size);
    }
    return prepared;
}

template <class T>
void decoder_forward(In<T> keys, In<T> values, In<T> weight, In<T> bias, std::optional<In<T>> v,
                     In<T> s0, std::optional<Indices> lengths, Out<T> a, Out<T> step, Out<T> alpha,
                     Out<T> y, int score_code, int cell_code) {
    const long batch = y.shape(0), steps = y.shape(1), hidden = y.shape(2);
    const long count = keys.shape(1), compared = keys.shape(2), gates = values.shape(2);
    const long width = weight.shape(0);
    nb::gil_scoped_release release;
    const PackedMatrix<T> packed(hidden, width, StridedPack<T>{weight.data(), hidden, 1});
    const Temporary<T> powers(v ? batch * count * compared : 0);
    auto run = [&](auto score, auto cell) {
        for_groups(batch, [&](long first, int rows) {
            const auto prepared =
                prepare(score, keys, data_or_null(lengths), first, rows, powers.data());
            for (long j = 0; j < steps; j++) {
                const StridedPack<T> before =
                    j == 0 ? StridedPack<T>{s0.data(), hidden, 1}
                           : StridedPack<T>{y.data() + (j - 1) * hidden, steps * hidden, 1};
                packed.multiply_rows(first, rows, before,
                                     ActivateTile<T>{0, 0, step.data() + j * width, nullptr,
                                                     steps * width, bias.data()});
                for (long n = first; n < first + rows; n++) {
                    const long at = n * steps + j;
                    const Keys<T>& seen = prepared[n - first];
                    const long have = seen.count;
                    const T* s = before.data + n * before.lane_stride;
                    const T* from_s = step.data() + at * width;
                    T* weights = alpha.data() + at * count;
                    T* inputs = a.data() + at * gates;
                    score.forward(from_s, s, seen, weights);
                    softmax(weights, have);
                    std::fill(weights + have, weights + count, T(0));
                    add_rows(weights, values.data() + n * count * gates, have, gates, inputs);
                    cell.forward(hidden, inputs, from_s + (width - gates), s,
                                 y.data() + at * hidden);
                }
            }
        });
    };
    with_score<T>(score_code, compared, data_or_null(v), [&](auto score) {
        with_cell<T>(cell_code, [&](auto cell) { run(score, cell); });
    });
}

// A finish that adds the tile to a row-major matrix.
template <class T>
struct AddTile {
    T* data;
    long stride;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++) {
            T* target = data + (row + i) * stride + column;
            const T* values = tile + i * width;
            for_lanes<T>(0, columns, [=](auto lanes) {
                lanes.store(target, lanes.load(target) + lanes.load(values));
            });
        }
    }
};

// From the last step to the first; ds0 carries the gradient of the state from step to step.
template <class T>
void decoder_backward(In<T> dy, In<T> keys, In<T> values, In<T> weight, std::optional<In<T>> v,
                      In<T> s0, std::optional<Indices> lengths, In<T> a, In<T> step, In<T> alpha,
                      In<T> y, Out<T> da, Out<T> dstep, Out<T> dkeys, Out<T> dvalues, Out<T> ds0,
                      std::optional<Out<T>> dv, int score_code, int cell_code) {
    const long batch = y.shape(0), steps = y.shape(1), hidden = y.shape(2);
    const long count = keys.shape(1), compared = keys.shape(2), gates = values.shape(2);
    const long width = weight.shape(0);
    nb::gil_scoped_release release;
    const PackedMatrix<T> packed(width, hidden, StridedPack<T>{weight.data(), 1, hidden});
    const Temporary<T> powers(v ? batch * count * compared : 0);
    const Temporary<T> dscores(batch * steps * count);
    const Temporary<T> dv_parts(dv ? batch * compared : 0);
    auto run = [&](auto score, auto cell) {
        for_groups(batch, [&](long first, int rows) {
            const long end = first + rows;
            const auto prepared =
                prepare(score, keys, data_or_null(lengths), first, rows, powers.data());
            std::fill(ds0.data() + first * hidden, ds0.data() + end * hidden, T(0));
            if (dv) {
                std::fill(dv_parts.data() + first * compared, dv_parts.data() + end * compared,
                          T(0));
                std::fill(dkeys.data() + first * count * compared,
                          dkeys.data() + end * count * compared, T(0));
            }
            for (long j = steps - 1; j >= 0; j--) {
                for (long n = first; n < end; n++) {
                    const long at = n * steps + j;
                    const Keys<T>& seen = prepared[n - first];
                    const long have = seen.count;
                    const T* s = y.data() + at * hidden;
                    const T* before = j == 0 ? s0.data() + n * hidden : s - hidden;
                    const T* from_s = step.data() + at * width;
                    const T* weights = alpha.data() + at * count;
                    const T* given = dy.data() + at * hidden;
                    T* ds = ds0.data() + n * hidden;
                    T* dinputs = da.data() + at * gates;
                    T* dfrom_s = dstep.data() + at * width;
                    T* dscore = dscores.data() + at * count;
                    for_lanes<T>(0, hidden, [=](auto lanes) {
                        lanes.store(ds, lanes.load(ds) + lanes.load(given));
                    });
                    cell.backward(hidden, a.data() + at * gates, from_s + (width - gates), before,
                                  s, ds, dinputs, dfrom_s + (width - gates));
                    row_products(values.data() + n * count * gates, dinputs, have, gates, T(1),
                                 dscore);
                    const T expected = sum<T>(0, have, [=](auto lanes) {
                        return Vec<T>(lanes.load(weights) * lanes.load(dscore));
                    });
                    for_lanes<T>(0, have, [=](auto lanes) {
                        lanes.store(dscore, lanes.load(weights) * (lanes.load(dscore) - expected));
                    });
                    std::fill(dscore + have, dscore + count, T(0));
                    score.backward(from_s, before, seen, dscore, dfrom_s, ds,
                                   dkeys.data() + n * count * compared,
                                   dv_parts.data() + n * compared);
                }
                packed.multiply_rows(first, rows,
                                     StridedPack<T>{dstep.data() + j * width, steps * width, 1},
                                     AddTile<T>{ds0.data(), hidden});
            }
        });
        // What only sums over time is a product of its own for every sequence.
        parallel_for(batch, 1, [&](long begin, long end) {
            for (long n = begin; n < end; n++) {
                multiply_here<T>(count, gates, steps,
                                 StridedPack<T>{alpha.data() + n * steps * count, 1, count},
                                 StridedPack<T>{da.data() + n * steps * gates, 1, gates},
                                 WriteTile<T>{dvalues.data() + n * count * gates, gates});
                T* dkeys_n = dkeys.data() + n * count * compared;
                if (score.kHasQuery) {
                    for (long i = 0; i < count; i++)
                        for_lanes<T>(0, compared, [=, row = dkeys_n + i * compared](auto lanes) {
                            lanes.store(row, lanes.load(row) * lanes.load(score.v));
                        });
                } else if (steps > 0) {
                    const T* dscore = dscores.data() + n * steps * count;
                    multiply_here<T>(count, hidden, steps - 1,
                                     StridedPack<T>{dscore + count, 1, count},
                                     StridedPack<T>{y.data() + n * steps * hidden, 1, hidden},
                                     WriteTile<T>{dkeys_n, compared});
                    for (long i = 0; i < count; i++)
                        add_rows(dscore + i, s0.data() + n * hidden, 1, hidden,
                                 dkeys_n + i * compared);
                } else {
                    std::fill_n(dkeys_n, count * compared, T(0));
                }
            }
        });
    };
    with_score<T>(score_code, compared, data_or_null(v), [&](auto score) {
        with_cell<T>(cell_code, [&](auto cell) { run(score, cell); });
    });
    if (dv)
        map<T>(compared, [=, parts = dv_parts.data(), target = dv->data()](auto lanes) {
            Vec<T> sum{};
            for (long n = 0; n < batch; n++) sum += lanes.load(parts + n * compared);
            lanes.store(target, sum);
        });
}

template <class T>
void bind(nb::module_& m) {
    m.def("decoder_loop_forward", &decoder_forward<T>, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg());
    m.def("decoder_loop_backward", &decoder_backward<T>, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
          nb::arg());
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
