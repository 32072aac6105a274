// Binary cross-entropy on logits: l = w (p t softplus(−x) + (1 − t) softplus(x)), and its slope.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {
namespace {

// `slope` receives dl/dx, `losses` each l where wanted; their sum comes back.
template <class T>
double binary_cross_entropy_forward(In<T> x, In<T> target, std::optional<In<T>> weight,
                                    std::optional<In<T>> pos_weight, Out<T> slope,
                                    std::optional<Out<T>> losses) {
    const Check check;
    check.values("target", target, x.size());
    check.values("weight", weight, x.size());
    check.values("pos_weight", pos_weight, x.size());
    check.values("slope", slope, x.size());
    check.values("losses", losses, x.size());
    const KernelScope scope(x.size());
    return parallel_reduce_sum<T>(
        x.size(),
        [x = x.data(), t = target.data(), w = data_or_null(weight), p = data_or_null(pos_weight),
         slope = slope.data(), losses = data_or_null(losses)](auto lanes) {
            const Vec<T> logit = lanes.load(x);
            const Vec<T> decay = exp(Vec<T>(-absolute(logit)));
            const Vec<T> log_one_plus = log1p(decay);
            const Vec<T> minus_log_yes = maximum(Vec<T>(-logit), Vec<T>{}) + log_one_plus;
            const Vec<T> minus_log_no = maximum(logit, Vec<T>{}) + log_one_plus;
            const Vec<T> large = T(1) / (T(1) + decay), small = decay * large;
            const Vec<T> yes = logit < T(0) ? small : large;
            const Vec<T> no = logit < T(0) ? large : small;
            const Vec<T> negatives = T(1) - lanes.load(t);
            Vec<T> positives = lanes.load(t);
            if (p != nullptr) positives = lanes.load(p) * positives;
            Vec<T> loss = positives * minus_log_yes + negatives * minus_log_no;
            Vec<T> derivative = negatives * yes - positives * no;
            if (w != nullptr) {
                loss = lanes.load(w) * loss;
                derivative = lanes.load(w) * derivative;
            }
            lanes.store(slope, derivative);
            if (losses != nullptr) lanes.store(losses, loss);
            return loss;
        });
}

// dx = dlosses · factor · slope; without dlosses that factor is 1.
template <class T>
void binary_cross_entropy_backward(std::optional<In<T>> dlosses, In<T> slope, Out<T> dx,
                                   double factor) {
    const Check check;
    check.values("dlosses", dlosses, slope.size());
    check.values("dx", dx, slope.size());
    const KernelScope scope(slope.size());
    parallel_transform<T>(slope.size(), [given = data_or_null(dlosses), slope = slope.data(),
                                         dx = dx.data(), factor = T(factor)](auto lanes) {
        const Vec<T> derivative = factor * lanes.load(slope);
        lanes.store(dx, given == nullptr ? derivative : lanes.load(given) * derivative);
    });
}

const KernelRegistrar registrars[] = {
    {"binary_cross_entropy_forward", binary_cross_entropy_forward<float>,
     binary_cross_entropy_forward<double>},
    {"binary_cross_entropy_backward", binary_cross_entropy_backward<float>,
     binary_cross_entropy_backward<double>},
};

}  // namespace
}  // namespace handgrad
