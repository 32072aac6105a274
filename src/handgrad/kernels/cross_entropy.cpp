// Cross-entropy with its softmax fused.
//
//   log p = x − max x − log Σ exp(x − max x),  l = −Σ_c q_c log p_c,  dl/dx = p Σ_c q_c − q
//   q_c = w_c ((1 − s) t_c + s/C),  t_c a probability, or 1 at the target's index and 0 elsewhere
// Of each row max x, log Σ and Σ q are kept: p is computed again, and neither p nor q is stored.
// They lie in `kept` (4, rows) with the losses in the fourth row. Their sum over the divisor of the
// reduction is the loss. Both stay in arrays, as Python need not know the divisor to go backward.
#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/indices.h"
#include "core/rowwise/log_softmax.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
struct Kept {
    T* highest;
    T* log_sum;
    T* q_sum;
    T* loss;

    Kept(T* kept, long rows)
        : highest(kept), log_sum(kept + rows), q_sum(kept + 2 * rows), loss(kept + 3 * rows) {}
};

// Class weights and label smoothing: q_c = keep · w_c t_c + share · w_c.
template <class T>
struct Smoothing {
    const T* weight;
    T keep, share;

    Smoothing(const T* class_weight, double smoothing, long classes)
        : weight(class_weight), keep(T(1 - smoothing)), share(T(smoothing / double(classes))) {}

    T weight_of(long c) const { return weight == nullptr ? T(1) : weight[c]; }

    template <class Lanes>
    Vec<T> weights(Lanes lanes) const {
        return weight == nullptr ? splat(T(1)) : lanes.load(weight);
    }
};

template <class T>
double sum_of_losses(const Kept<T>& keep, long rows) {
    return parallel_reduce_sum<T>(rows, [=](auto lanes) { return lanes.load(keep.loss); });
}

// −Σ q log p, where a class with q = 0 adds nothing even if its log p is −∞.
template <class T>
Vec<T> loss_terms(Vec<T> q, Vec<T> log_p) {
    return q == T(0) ? Vec<T>{} : -q * log_p;
}

// The loss of all rows over the weight of all targets for a mean, over 1 for a sum.
template <class T>
void forward_indices(In<T> x, Indices target, std::optional<In<T>> weight, Out<T> kept, Out<T> loss,
                     Out<double> divisor, bool mean, long outer, long classes, long inner,
                     double label_smoothing, long ignore_index) {
    const Check check;
    const long all = check.product("x", outer, inner);
    check.values("x", x, outer, classes, inner);
    check.values("target", target, all);
    check.values("weight", weight, classes);
    check.values("kept", kept, 4, all);
    check.values("loss", loss, 1);
    check.values("divisor", divisor, 1);
    check_indices(target, classes, ignore_index);
    const Axis axis{outer, classes, inner};
    const long rows = axis.rows();
    const KernelScope scope(x.size());
    const Kept<T> keep(kept.data(), rows);
    const Smoothing<T> smoothing(data_or_null(weight), label_smoothing, classes);
    // Of an x without values the classes are a number that no array confirms.
    const T all_shares =
        smoothing.share * reduce_sum<T>(0, all == 0 ? 0 : classes,
                                        [=](auto lanes) { return smoothing.weights(lanes); });
    for_rows<T, 1>(axis, {x.data()}, nullptr, [&](long row, auto in, T*) {
        const T* scores = in[0];
        T highest, log_sum;
        log_softmax_row(scores, classes, highest, log_sum);
        keep.highest[row] = highest;
        keep.log_sum[row] = log_sum;
        keep.q_sum[row] = keep.loss[row] = T(0);
        const long c = target.data()[row];
        if (c == ignore_index) return;
        const T q = smoothing.keep * smoothing.weight_of(c);
        T loss = q == T(0) ? T(0) : -q * (scores[c] - highest - log_sum);
        if (smoothing.share != T(0))
            loss += reduce_sum<T>(0, classes, [=](auto lanes) {
                return loss_terms<T>(smoothing.share * smoothing.weights(lanes),
                                     lanes.load(scores) - highest - log_sum);
            });
        keep.q_sum[row] = q + all_shares;
        keep.loss[row] = loss;
    });
    double total_weight = 0;
    for (long row = 0; row < rows; row++) {
        const long c = target.data()[row];
        if (c != ignore_index) total_weight += double(smoothing.weight_of(c));
    }
    *divisor.data() = mean && total_weight != 0 ? total_weight : 1.0;
    *loss.data() = T(sum_of_losses(keep, rows) / *divisor.data());
}

template <class T>
void forward_probabilities(In<T> x, In<T> target, std::optional<In<T>> weight, Out<T> kept,
                           Out<T> loss, Out<double> divisor, bool mean, long outer, long classes,
                           long inner, double label_smoothing) {
    const Check check;
    const long all = check.product("x", outer, inner);
    check.values("x", x, outer, classes, inner);
    check.values("target", target, x.size());
    check.values("weight", weight, classes);
    check.values("kept", kept, 4, all);
    check.values("loss", loss, 1);
    check.values("divisor", divisor, 1);
    const Axis axis{outer, classes, inner};
    const KernelScope scope(x.size());
    const Kept<T> keep(kept.data(), axis.rows());
    const Smoothing<T> smoothing(data_or_null(weight), label_smoothing, classes);
    for_rows<T, 2>(axis, {x.data(), target.data()}, nullptr, [=](long row, auto in, T*) {
        const auto [scores, wanted] = in;
        T highest, log_sum;
        log_softmax_row(scores, classes, highest, log_sum);
        keep.highest[row] = highest;
        keep.log_sum[row] = log_sum;
        const auto [loss, q_sum] =
            reduce_sums<T, 2>(0, classes, [=, scores = scores, wanted = wanted](auto lanes) {
                const Vec<T> q = smoothing.weights(lanes) *
                                 (smoothing.keep * lanes.load(wanted) + smoothing.share);
                const Vec<T> log_p = lanes.load(scores) - highest - log_sum;
                return std::array<Vec<T>, 2>{loss_terms<T>(q, log_p), q};
            });
        keep.loss[row] = loss;
        keep.q_sum[row] = q_sum;
    });
    *divisor.data() = mean ? static_cast<double>(std::max(axis.rows(), 1L)) : 1.0;
    *loss.data() = T(sum_of_losses(keep, axis.rows()) / *divisor.data());
}

// The gradient of each row's loss: dlosses as they are, or the one of all over the divisor.
template <class T>
struct RowGradients {
    const T* dlosses;
    double of_each;

    RowGradients(In<T> given, const std::optional<In<double>>& divisor)
        : dlosses(divisor ? nullptr : given.data()),
          of_each(divisor ? double(*given.data()) / *divisor->data() : 1.0) {}

    T operator[](long row) const { return dlosses == nullptr ? T(of_each) : dlosses[row]; }
};

// dx = dloss (p Σ q − q); with a divisor there is one dloss, of the loss of all rows.
template <class T>
void backward_indices(In<T> dloss, std::optional<In<double>> divisor, In<T> x, Indices target,
                      std::optional<In<T>> weight, In<T> kept, Out<T> dx, long outer, long classes,
                      long inner, double label_smoothing, long ignore_index) {
    const Check check;
    const long all = check.product("x", outer, inner);
    check.values("x", x, outer, classes, inner);
    check.values("target", target, all);
    check.values("weight", weight, classes);
    check.values("kept", kept, 4, all);
    check.values("dx", dx, x.size());
    check.values("dloss", dloss, divisor ? 1 : all);
    check.values("divisor", divisor, 1);
    if (x.size() == 0) return;
    check_indices(target, classes, ignore_index);
    const Axis axis{outer, classes, inner};
    const KernelScope scope(x.size());
    const Kept<const T> keep(kept.data(), axis.rows());
    const Smoothing<T> smoothing(data_or_null(weight), label_smoothing, classes);
    const RowGradients<T> dlosses(dloss, divisor);
    for_rows<T, 1>(axis, {x.data()}, dx.data(), [&](long row, auto in, T* out) {
        const long c = target.data()[row];
        const T scale = dlosses[row];
        if (c == ignore_index) {  // 0, or NaN where a score or dloss is not finite
            std::fill_n(out, classes, scale * (keep.log_sum[row] * T(0)));
            return;
        }
        const T* scores = in[0];
        const T score = scores[c];  // dx may lie where x lies
        const T highest = keep.highest[row], log_sum = keep.log_sum[row], q_sum = keep.q_sum[row];
        transform<T>(0, classes, [=](auto lanes) {
            const Vec<T> p = exp(Vec<T>(lanes.load(scores) - highest - log_sum));
            lanes.store(out, scale * (p * q_sum - smoothing.share * smoothing.weights(lanes)));
        });
        // Anew, and not taken off the product: ∞ − ∞ would be NaN.
        const T p = exp(splat(score - highest - log_sum))[0];
        const T w = smoothing.weight_of(c);
        out[c] = scale * (p * q_sum - smoothing.share * w - smoothing.keep * w);
    });
}

template <class T>
void backward_probabilities(In<T> dloss, std::optional<In<double>> divisor, In<T> x, In<T> target,
                            std::optional<In<T>> weight, In<T> kept, Out<T> dx, long outer,
                            long classes, long inner, double label_smoothing) {
    const Check check;
    const long all = check.product("x", outer, inner);
    check.values("x", x, outer, classes, inner);
    check.values("target", target, x.size());
    check.values("weight", weight, classes);
    check.values("kept", kept, 4, all);
    check.values("dx", dx, x.size());
    check.values("dloss", dloss, divisor ? 1 : all);
    check.values("divisor", divisor, 1);
    if (x.size() == 0) return;
    const Axis axis{outer, classes, inner};
    const KernelScope scope(x.size());
    const Kept<const T> keep(kept.data(), axis.rows());
    const Smoothing<T> smoothing(data_or_null(weight), label_smoothing, classes);
    const RowGradients<T> dlosses(dloss, divisor);
    for_rows<T, 2>(axis, {x.data(), target.data()}, dx.data(), [&](long row, auto in, T* out) {
        const T* scores = in[0];
        const T* wanted = in[1];
        const T scale = dlosses[row];
        const T highest = keep.highest[row], log_sum = keep.log_sum[row], q_sum = keep.q_sum[row];
        transform<T>(0, classes, [=](auto lanes) {
            const Vec<T> p = exp(Vec<T>(lanes.load(scores) - highest - log_sum));
            const Vec<T> q =
                smoothing.weights(lanes) * (smoothing.keep * lanes.load(wanted) + smoothing.share);
            lanes.store(out, scale * (p * q_sum - q));
        });
    });
}

const KernelRegistrar registrars[] = {
    {"cross_entropy_forward_indices", forward_indices<float>, forward_indices<double>},
    {"cross_entropy_forward_probabilities", forward_probabilities<float>,
     forward_probabilities<double>},
    {"cross_entropy_backward_indices", backward_indices<float>, backward_indices<double>},
    {"cross_entropy_backward_probabilities", backward_probabilities<float>,
     backward_probabilities<double>},
};

}  // namespace
}  // namespace handgrad
