// CTC loss with its softmax fused: −log of the probability of all paths that spell a target.
//
//   α_t(s) = p_t(l′_s) (α_{t−1}(s) + α_{t−1}(s−1) + α_{t−1}(s−2) where s may skip),  p(l) = its end
//   β_{t−1}(s) = the same over what follows s,  γ = α β/p(l),  dx = dloss (p − Σ γ of a label)
// States s stand for l′ = (blank, l_1, blank, ..., l_L, blank). A job takes an example through all
// of its steps, the states of one step side by side. α and β are logarithms in double, whatever x
// is: of a long sequence the paths that matter may have a small share of all, and in float log α
// would lose their digits. α is kept; of each step max x and log Σ exp(x − max x) are, so that
// neither p nor log p is stored.
#include <cmath>
#include <limits>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/indices.h"
#include "core/binding/lengths.h"
#include "core/rowwise/log_softmax.h"
#include "core/runtime/gil.h"
#include "core/runtime/memory.h"
#include "core/runtime/threads.h"

namespace handgrad {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// So many −∞ stand beside a row, in front of the first state or behind the last.
constexpr long kGuard = 2;

// log(eᵃ + eᵇ + eᶜ); −∞ where all three are.
Vec<double> log_sum_exp(Vec<double> a, Vec<double> b, Vec<double> c) {
    const Vec<double> highest = maximum(maximum(a, b), c);
    const Vec<double> shift = highest > kNever ? highest : Vec<double>{};
    return shift + log(Vec<double>(exp(Vec<double>(a - shift)) + exp(Vec<double>(b - shift)) +
                                   exp(Vec<double>(c - shift))));
}

// The steps and labels of one example.
struct Example {
    const std::int64_t* targets;
    long blank, steps, labels;

    long states() const { return 2 * labels + 1; }

    // 0 where a path may come to a state from the one before the last, −∞ elsewhere; behind the
    // last state as well.
    void fill_skips(double* skip) const {
        std::fill_n(skip, states() + kGuard, kNever);
        for (long k = 1; k < labels; k++)
            if (targets[k] != targets[k - 1]) skip[2 * k + 1] = 0;
    }

    // log p of the label of every state.
    template <class T>
    void look_up(const T* scores, const T* normalizer, double* log_y) const {
        const double log_sum = double(normalizer[0]) + double(normalizer[1]);
        const double log_blank = double(scores[blank]) - log_sum;
        log_y[0] = log_blank;
        for (long k = 0; k < labels; k++) {
            log_y[2 * k + 1] = double(scores[targets[k]]) - log_sum;
            log_y[2 * k + 2] = log_blank;
        }
    }
};

// The arrays fit together; the sizes of a batch are those of x and the targets then.
template <class T, class LogAlpha, class Normalizers, class LogP>
const In<T>& checked(const Check& check, const In<T>& x, const Indices& targets,
                     const LogAlpha& log_alpha, const Normalizers& normalizers, const LogP& log_p,
                     long blank) {
    Size n{"N"}, t{"T"}, c{"C"}, l{"L"};
    check.shape("x", x, n, t, c);
    check.shape("targets", targets, n, l);
    check.shape("log_alpha", log_alpha, n, t, check.product("log_alpha", l, 2) + 1 + kGuard);
    check.shape("normalizers", normalizers, n, t, 2);
    check.shape("log_p", log_p, n);
    check.range("blank", blank, 0, std::max(c - 1, 0L));
    check.holds(c > 0 || n == 0 || t == 0, "C is 0", "a class for the blank");
    return x;
}

struct Batch {
    long examples, steps, classes, most, blank;
    const std::int64_t *targets, *input_lengths, *target_lengths;

    template <class T>
    Batch(const In<T>& x, const Indices& labels, const std::optional<Indices>& inputs,
          const std::optional<Indices>& outputs, long blank_class)
        : examples(x.shape(0)),
          steps(x.shape(1)),
          classes(x.shape(2)),
          most(labels.shape(1)),
          blank(blank_class),
          targets(labels.data()),
          input_lengths(checked_lengths(inputs, examples, steps)),
          target_lengths(checked_lengths(outputs, examples, most)) {
        for (long n = 0; n < examples; n++)
            for (long k = 0; k < length(n); k++) {
                const long label = targets[n * most + k];
                if (label < 0 || label >= classes || label == blank)
                    throw nb::index_error(("label " + std::to_string(label)).c_str());
            }
    }

    long length(long n) const { return target_lengths == nullptr ? most : target_lengths[n]; }
    // The states of a row of α, with those in front of the first.
    long width() const { return 2 * most + 1 + kGuard; }

    Example operator[](long n) const {
        return {targets + n * most, blank, input_lengths == nullptr ? steps : input_lengths[n],
                length(n)};
    }

    // The factor of each loss; of a mean over the labels, then over the batch.
    double factor(long n, bool mean) const {
        return mean ? 1.0 / (double(std::max(length(n), 1L)) * double(examples)) : 1.0;
    }

    // body(n, workspace) for every example; a workspace has `rows` rows of width().
    template <class Body>
    void each(long rows, const Body& body) const {
        const long size = rows * width();
        const Workspace<double> workspace(examples * size);
        parallel_for(examples, 1, [&](long begin, long end) {
            for (long n = begin; n < end; n++) body(n, workspace.data() + n * size);
        });
    }
};

// The logarithm of the probability that a path ends in the target: in its last blank or label.
double log_p_of_ends(const double* log_alpha, const Example& example) {
    const long last = 2 * example.labels;
    if (example.steps == 0) return last == 0 ? 0.0 : kNever;
    const double one = log_alpha[last], other = last == 0 ? kNever : log_alpha[last - 1];
    const double highest = std::max(one, other);
    if (highest == kNever && one == other) return kNever;
    return highest + std::log(std::exp(one - highest) + std::exp(other - highest));
}

// log_alpha (N, T, 2 + S), normalizers (N, T, 2), log_p and losses (N,).
template <class T>
void forward(In<T> x, Indices targets, std::optional<Indices> input_lengths,
             std::optional<Indices> target_lengths, Out<double> log_alpha, Out<T> normalizers,
             Out<double> log_p, Out<T> losses, Out<T> loss, long blank, bool mean,
             bool zero_infinity) {
    const Check check;
    check.values("losses", losses, log_p.size());
    check.values("loss", loss, 1);
    const Batch batch(checked(check, x, targets, log_alpha, normalizers, log_p, blank), targets,
                      input_lengths, target_lengths, blank);
    const KernelScope scope(x.size() + log_alpha.size());
    batch.each(2, [&](long n, double* log_y) {
        const Example example = batch[n];
        const long states = example.states();
        double* skip = log_y + batch.width();
        example.fill_skips(skip);
        double* row = log_alpha.data() + n * batch.steps * batch.width() + kGuard;
        for (long t = 0; t < example.steps; t++) {
            breathe();
            const T* scores = x.data() + (n * batch.steps + t) * batch.classes;
            T* normalizer = normalizers.data() + 2 * (n * batch.steps + t);
            log_softmax_row(scores, batch.classes, normalizer[0], normalizer[1]);
            example.look_up(scores, normalizer, log_y);
            const double* before = row;
            if (t > 0) row += batch.width();
            std::fill_n(row - kGuard, kGuard, kNever);
            if (t == 0) {
                for (long s = 0; s < states; s++) row[s] = log_y[s] + (s < 2 ? 0 : kNever);
                continue;
            }
            transform<double>(0, states, [=](auto lanes) {
                lanes.store(row, lanes.load(log_y) +
                                     log_sum_exp(lanes.load(before), lanes.load(before - 1),
                                                 lanes.load(before - 2) + lanes.load(skip)));
            });
        }
        log_p.data()[n] = log_p_of_ends(row, example);
    });
    double sum = 0;
    for (long n = 0; n < batch.examples; n++) {
        const double each = -log_p.data()[n];
        const double counted = zero_infinity && std::isinf(each) ? 0.0 : each;
        losses.data()[n] = T(counted);
        sum += batch.factor(n, mean) * counted;
    }
    *loss.data() = T(sum);
}

// dx of one step: scale (p − Σ γ of the states of a label).
template <class T>
void write_step(const Example& example, const T* scores, const T* normalizer, const double* gamma,
                T scale, long classes, T* dx) {
    const T highest = normalizer[0], log_sum = normalizer[1];
    transform<T>(0, classes, [=](auto lanes) {
        lanes.store(dx, exp(Vec<T>(lanes.load(scores) - highest - log_sum)));
    });
    double blanks = gamma[0];
    for (long k = 0; k < example.labels; k++) {
        dx[example.targets[k]] -= T(gamma[2 * k + 1]);
        blanks += gamma[2 * k + 2];
    }
    dx[example.blank] -= T(blanks);
    transform<T>(0, classes, [=](auto lanes) { lanes.store(dx, scale * lanes.load(dx)); });
}

// dloss has one value for each example, or one for all.
template <class T>
void backward(In<T> dloss, In<T> x, Indices targets, std::optional<Indices> input_lengths,
              std::optional<Indices> target_lengths, In<double> log_alpha, In<T> normalizers,
              In<double> log_p, Out<T> dx, long blank, bool mean, bool zero_infinity) {
    const Check check;
    check.values("dx", dx, x.size());
    check.values("dloss", dloss, dloss.ndim() == 0 ? 1 : log_p.size());
    const Batch batch(checked(check, x, targets, log_alpha, normalizers, log_p, blank), targets,
                      input_lengths, target_lengths, blank);
    const KernelScope scope(x.size() + log_alpha.size());
    batch.each(5, [&](long n, double* log_y) {
        const Example example = batch[n];
        const long states = example.states(), width = batch.width();
        const long first = n * batch.steps, behind = first + example.steps;
        T* dx_row = dx.data() + first * batch.classes;
        std::fill_n(dx_row + example.steps * batch.classes,
                    (batch.steps - example.steps) * batch.classes, T(0));
        const double log_total = log_p.data()[n];
        if (!std::isfinite(log_total)) {
            const bool is_zero = zero_infinity && std::isinf(log_total);
            std::fill_n(dx_row, example.steps * batch.classes,
                        is_zero ? T(0) : std::numeric_limits<T>::quiet_NaN());
            return;
        }
        double *skip = log_y + width, *log_beta = skip + width, *log_left = log_beta + width,
               *gamma = log_left + width;
        example.fill_skips(skip);
        for (long s = 0; s < states; s++) log_beta[s] = s < states - 2 ? kNever : 0;
        std::fill_n(log_left + states, kGuard, kNever);
        const T scale = T(double(dloss.data()[dloss.ndim() == 0 ? 0 : n]) * batch.factor(n, mean));
        for (long step = behind - 1; step >= first; step--) {
            breathe();
            const T* scores = x.data() + step * batch.classes;
            const T* normalizer = normalizers.data() + 2 * step;
            const double* alpha = log_alpha.data() + step * width + kGuard;
            example.look_up(scores, normalizer, log_y);
            transform<double>(0, states, [=](auto lanes) {
                const Vec<double> beta = lanes.load(log_beta);
                lanes.store(gamma, exp(Vec<double>(lanes.load(alpha) + beta - log_total)));
                lanes.store(log_left, lanes.load(log_y) + beta);
            });
            transform<double>(0, states, [=](auto lanes) {
                lanes.store(log_beta, log_sum_exp(lanes.load(log_left), lanes.load(log_left + 1),
                                                  lanes.load(log_left + 2) + lanes.load(skip + 2)));
            });
            write_step(example, scores, normalizer, gamma, scale, batch.classes,
                       dx.data() + step * batch.classes);
        }
    });
}

const KernelRegistrar registrars[] = {
    {"ctc_loss_forward", forward<float>, forward<double>},
    {"ctc_loss_backward", backward<float>, backward<double>},
};

}  // namespace
}  // namespace handgrad
