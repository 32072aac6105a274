// The loop over time of models/decoder_loop.py: scores, weights and cell of every step.
//
//     α_j = softmax_i score(s_{j−1}, k_i),  s_j = cell(a_j + Σ_i α_ji m_i, s_{j−1})
// The two products of a step, W_s s for an additive score and W_hh s, are one: a row of `step` is
// [W_s; W_hh] s_{j−1} + [0; b_hh].
//
// Sequences do not wait for each other: a thread takes a few through all steps, up to MR of them,
// and packs the weight once for all of them. Every sum has an order of its own that neither their
// number nor the threads change.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/lengths.h"
#include "core/gemm/epilogue.h"
#include "core/gemm/packed_matrix.h"
#include "core/recurrent/decoder_cells.h"
#include "core/recurrent/decoder_scores.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// scores become weights; a row of nothing gives 0.
template <class T>
void softmax(T* scores, long count) {
    const T best = reduce_max(scores, count);
    const T highest = best == -std::numeric_limits<T>::infinity() ? T(0) : best;
    const T all = reduce_sum<T>(0, count, [=](auto lanes) {
        const Vec<T> power = exp(Vec<T>(lanes.load(scores) - highest));
        lanes.store(scores, power);
        return power;
    });
    const T scale = all == T(0) ? T(1) : T(1) / all;
    transform<T>(0, count, [=](auto lanes) { lanes.store(scores, lanes.load(scores) * scale); });
}

// body(first sequence, number of them), in parallel.
template <class Body>
void for_groups(long batch, const Body& body) {
    const long threads = get_threads();
    const long least = (batch + kMR - 1) / kMR;
    const long groups = std::min((least + threads - 1) / threads * threads, batch);
    parallel_for(groups, 1, [&](long begin, long end) {
        for (long g = begin; g < end; g++) {
            const long first = g * batch / groups;
            body(first, static_cast<int>((g + 1) * batch / groups - first));
        }
    });
}

// The keys and values visible to a group of sequences in every step: the first values (N, S, G),
// and the keys (N, S, A) as the score prepares them.
template <class T>
class VisibleKeys {
  public:
    template <class Score>
    VisibleKeys(const Score& score, const StridedIn<T>& keys, const StridedIn<T>& values,
                const std::int64_t* lengths, long first, int rows)
        : count_(keys.shape(1)),
          pitch_(apart<T>(values.shape(2))),
          values_(rows * count_ * pitch_),
          powers_(score.kHasQuery ? rows * count_ * apart<T>(keys.shape(2)) : 0) {
        const long width = apart<T>(keys.shape(2));
        for (int r = 0; r < rows; r++) {
            const long n = first + r, have = lengths ? lengths[n] : count_;
            keys_[r] = score.prepare({keys.data() + n * keys.stride(0), keys.stride(1)}, have,
                                     {powers_.data() + r * count_ * width, width});
            for (long i = 0; i < have; i++)
                copy_values(values_.data() + (r * count_ + i) * pitch_,
                            values.data() + n * values.stride(0) + i * values.stride(1),
                            values.shape(2));
        }
    }

    const Keys<T>& keys(long r) const { return keys_[r]; }
    Rows<const T> values(long r) const { return {values_.data() + r * count_ * pitch_, pitch_}; }

  private:
    std::array<Keys<T>, kMR> keys_;
    long count_, pitch_;
    Workspace<T> values_, powers_;
};

// The sizes of a loop, and its codes.
struct Sizes {
    Size batch{"N"}, steps{"T"}, hidden{"H"}, count{"S"}, compared{"A"}, gates{"G"};
    long width = 0;

    // `y` is that of forward or its gradient, `states` (T + 1, N, H), and `step` (T, N, ...).
    template <class T, class Y, class States, class Step, class Alpha, class Kept>
    Sizes(const Check& check, const StridedIn<T>& keys, const StridedIn<T>& values,
          const In<T>& weight, const std::optional<In<T>>& v, const Y& y, const States& states,
          const Step& step, const Alpha& alpha, const Kept& kept, int score_code, int cell_code) {
        check.range("the code of the score", score_code, 0, kScores - 1);
        check.range("the code of the cell", cell_code, 0, kCells - 1);
        check.shape("y", y, batch, steps, hidden);
        check.shape("keys", keys, batch, count, compared);
        check.shape("values", values, batch, count, gates);
        check.rows_in_one_piece("keys", keys);
        check.rows_in_one_piece("values", values);
        const bool additive = score_code == kAdditive, gru = cell_code == kGru;
        check.holds(gates == (gru ? GruCell<T>::kGates * hidden : long(hidden)),
                    "G is no multiple of H", "3 H for a GRU, H for other cells");
        check.holds(additive || compared == hidden, "A is not H",
                    "H for a score without a network");
        check.holds(v.has_value() == additive, "v is missing or too much",
                    "v for an additive score alone");
        check.holds(kept.has_value() == gru, "what a cell keeps is missing or too much",
                    "an array for a GRU alone");
        width = gates + (additive ? long(compared) : 0);
        check.shape("v", v, compared);
        check.shape("weight", weight, width, hidden);
        check.shape("states", states, steps + 1, batch, hidden);
        check.shape("step", step, steps, batch, width);
        check.shape("alpha", alpha, steps, batch, count);
        check.shape("kept", kept, steps, batch, gates);
    }
};

// y (N, T, H), and what backward needs of every step, time first: the states from s_0 on, the
// products, the weights, and what the cell keeps of the inputs. The sum of a cell that keeps
// nothing stands where its state will.
template <class T>
void decoder_forward(StridedIn<T> a, StridedIn<T> keys, StridedIn<T> values, In<T> weight,
                     In<T> bias, std::optional<In<T>> v, In<T> s0, std::optional<Indices> lengths,
                     Out<T> states, Out<T> step, Out<T> alpha, std::optional<Out<T>> kept, Out<T> y,
                     int score_code, int cell_code) {
    const Check check;
    Sizes sizes(check, keys, values, weight, v, y, states, step, alpha, kept, score_code,
                cell_code);
    check.shape("a", a, sizes.batch, sizes.steps, sizes.gates);
    check.rows_in_one_piece("a", a);
    check.shape("bias", bias, sizes.width);
    check.shape("s0", s0, sizes.batch, sizes.hidden);
    const long batch = sizes.batch, steps = sizes.steps, hidden = sizes.hidden;
    const long count = sizes.count, compared = sizes.compared, gates = sizes.gates;
    const long width = sizes.width;
    const auto* checked = checked_lengths(lengths, batch, count);
    const KernelScope scope;
    const auto cell = cell_of<T>(cell_code);
    auto run = [&]<class Element>(auto score) {
        const PackedMatrix<Element> packed(hidden, width, StridedPack<T>{weight.data(), hidden, 1});
        for_groups(batch, [&](long first, int rows) {
            const Registers<Element> registers;
            const VisibleKeys<T> visible(score, keys, values, checked, first, rows);
            copy_values(states.data() + first * hidden, s0.data() + first * hidden, rows * hidden);
            for (long j = 0; j < steps; j++) {
                const T* before = states.data() + j * batch * hidden;
                T* products = step.data() + j * batch * width;
                packed.multiply_rows(
                    first, rows, StridedPack<T>{before, hidden, 1},
                    ActivationEpilogue<T>{0, 0, products, nullptr, width, bias.data(), nullptr});
                for (long n = first; n < first + rows; n++) {
                    breathe();
                    const long at = j * batch + n;
                    const Keys<T>& compare = visible.keys(n - first);
                    const long have = compare.count;
                    const T* s = before + n * hidden;
                    const T* from_s = products + n * width;
                    T* weights = alpha.data() + at * count;
                    T* s_new = states.data() + (at + batch) * hidden;
                    T* inputs = kept ? kept->data() + at * gates : s_new;
                    score.forward(from_s, s, compare, weights);
                    softmax(weights, have);
                    std::fill(weights + have, weights + count, T(0));
                    add_rows(a.data() + n * a.stride(0) + j * a.stride(1), weights,
                             visible.values(n - first), have, gates, inputs);
                    cell.forward(hidden, inputs, from_s + (width - gates), s, s_new);
                    copy_values(y.data() + (n * steps + j) * hidden, s_new, hidden);
                }
            }
        });
    };
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() {
            with_score<T>(score_code, compared, data_or_null(v),
                          [&](auto score) { run.template operator()<Element>(score); });
        });
}

// y += x.
template <class T>
void add_to(T* y, const T* x, long count) {
    transform<T>(0, count, [=](auto lanes) { lanes.store(y, lanes.load(y) + lanes.load(x)); });
}

// An epilogue that adds the tile to a row-major matrix.
template <class T>
struct AddEpilogue {
    T* data;
    long stride;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++)
            add_to(data + (row + i) * stride + column, tile + i * width, columns);
    }
};

// target = factor · the sum of `count` rows.
template <class T>
void sum_rows(const T* rows, long count, long width, T factor, T* target) {
    parallel_transform<T>(width, [=](auto lanes) {
        Vec<T> sum{};
        for (long n = 0; n < count; n++) sum += lanes.load(rows + n * width);
        lanes.store(target, factor * sum);
    });
}

// From the last step to the first; ds0 carries the gradient of the state from step to step. dstep
// is as step, time first. The gradients of keys and values stand side by side in dmemory
// (N, S, A + G), those of b_ih and b_hh one below the other in dbias (2, G).
template <class T>
void decoder_backward(In<T> dy, StridedIn<T> keys, StridedIn<T> values, In<T> weight,
                      std::optional<In<T>> v, std::optional<Indices> lengths, In<T> states,
                      In<T> step, In<T> alpha, std::optional<In<T>> kept, Out<T> da, Out<T> dstep,
                      Out<T> dmemory, Out<T> ds0, Out<T> dbias, std::optional<Out<T>> dv,
                      int score_code, int cell_code) {
    const Check check;
    Sizes sizes(check, keys, values, weight, v, dy, states, step, alpha, kept, score_code,
                cell_code);
    check.shape("da", da, sizes.batch, sizes.steps, sizes.gates);
    check.shape("dstep", dstep, sizes.steps, sizes.batch, sizes.width);
    check.shape("dmemory", dmemory, sizes.batch, sizes.count, sizes.compared + sizes.gates);
    check.shape("ds0", ds0, sizes.batch, sizes.hidden);
    check.shape("dbias", dbias, 2, sizes.gates);
    check.shape("dv", dv, sizes.compared);
    const long batch = sizes.batch, steps = sizes.steps, hidden = sizes.hidden;
    const long count = sizes.count, compared = sizes.compared, gates = sizes.gates;
    const long width = sizes.width, pitch = compared + gates;
    const auto* checked = checked_lengths(lengths, batch, count);
    const KernelScope scope;
    const Workspace<T> dscores(steps * batch * count);
    const Workspace<T> dv_parts(batch * compared), dbias_parts(batch * 2 * gates);
    const auto cell = cell_of<T>(cell_code);
    auto run = [&]<class Element>(auto score) {
        const PackedMatrix<Element> packed(width, hidden, StridedPack<T>{weight.data(), 1, hidden});
        for_groups(batch, [&](long first, int rows) {
            const Registers<Element> registers;
            const long end = first + rows, of_keys = apart<T>(compared);
            const VisibleKeys<T> visible(score, keys, values, checked, first, rows);
            const Workspace<T> dkeys(score.kHasQuery ? rows * count * of_keys : 0);
            const auto dkeys_of = [&](long n) {
                return Rows<T>{dkeys.data() + (n - first) * count * of_keys, of_keys};
            };
            if (score.kHasQuery) std::fill_n(dkeys.data(), rows * count * of_keys, T(0));
            const auto clear = [=](T* values, long each) {
                std::fill(values + first * each, values + end * each, T(0));
            };
            clear(ds0.data(), hidden);
            clear(dv_parts.data(), compared);
            clear(dbias_parts.data(), 2 * gates);
            for (long j = steps - 1; j >= 0; j--) {
                for (long n = first; n < end; n++) {
                    breathe();
                    const long at = j * batch + n;
                    const Keys<T>& compare = visible.keys(n - first);
                    const long have = compare.count;
                    const T* s = states.data() + at * hidden;
                    const T* from_s = step.data() + at * width;
                    const T* weights = alpha.data() + at * count;
                    const T* given = dy.data() + (n * steps + j) * hidden;
                    T* ds = ds0.data() + n * hidden;
                    T* dinputs = da.data() + (n * steps + j) * gates;
                    T* dfrom_s = dstep.data() + at * width;
                    T* dgates = dfrom_s + (width - gates);
                    T* dbias_n = dbias_parts.data() + n * 2 * gates;
                    T* dscore = dscores.data() + at * count;
                    add_to(ds, given, hidden);
                    cell.backward(hidden, kept ? kept->data() + at * gates : nullptr,
                                  from_s + (width - gates), s, s + batch * hidden, ds, dinputs,
                                  dgates);
                    add_to(dbias_n, dinputs, gates);
                    add_to(dbias_n + gates, dgates, gates);
                    row_products(visible.values(n - first), dinputs, have, gates, T(1), dscore);
                    const T expected = reduce_sum<T>(0, have, [=](auto lanes) {
                        return Vec<T>(lanes.load(weights) * lanes.load(dscore));
                    });
                    transform<T>(0, have, [=](auto lanes) {
                        lanes.store(dscore, lanes.load(weights) * (lanes.load(dscore) - expected));
                    });
                    std::fill(dscore + have, dscore + count, T(0));
                    score.backward(from_s, s, compare, dscore, dfrom_s, ds, dkeys_of(n),
                                   dv_parts.data() + n * compared);
                }
                packed.multiply_rows(first, rows,
                                     StridedPack<T>{dstep.data() + j * batch * width, width, 1},
                                     AddEpilogue<T>{ds0.data(), hidden});
            }
            // A sum over time alone is a product of its own for every sequence.
            for (long n = first; n < end; n++) {
                T* dmemory_n = dmemory.data() + n * count * pitch;
                const auto over_time = [=](const T* a, const StridedPack<T>& b, long columns,
                                           T* c) {
                    multiply_here<T>(count, columns, steps, StridedPack<T>{a, 1, batch * count}, b,
                                     StoreEpilogue<T>{c, pitch});
                };
                over_time(alpha.data() + n * count, {da.data() + n * steps * gates, 1, gates},
                          gates, dmemory_n + compared);
                if (!score.kHasQuery)
                    over_time(dscores.data() + n * count,
                              {states.data() + n * hidden, 1, batch * hidden}, hidden, dmemory_n);
                else
                    for (long i = 0; i < count; i++)
                        transform<T>(0, compared, [=, row = dkeys_of(n)[i]](auto lanes) {
                            lanes.store(dmemory_n + i * pitch,
                                        T(4) * lanes.load(row) * lanes.load(score.v));
                        });
            }
        });
    };
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() {
            with_score<T>(score_code, compared, data_or_null(v),
                          [&](auto score) { run.template operator()<Element>(score); });
        });
    sum_rows(dbias_parts.data(), batch, 2 * gates, T(1), dbias.data());
    if (dv) sum_rows(dv_parts.data(), batch, compared, T(-2), dv->data());
}

const KernelRegistrar registrars[] = {
    {"decoder_loop_forward", decoder_forward<float>, decoder_forward<double>},
    {"decoder_loop_backward", decoder_backward<float>, decoder_backward<double>},
};

}  // namespace
}  // namespace handgrad
