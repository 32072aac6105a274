// Cosine attention: lengths of the states, scores, weights and sums, a state at a time.
#include "core/attention/state_attention.h"

namespace handgrad {
namespace {

// x / √(|x|² + eps), and what it was multiplied with, for every row.
template <class T>
void to_length_1(In<T> x, Out<T> x_hat, Out<T> inverse, T eps) {
    const long width = x.shape(2);
    parallel_for(inverse.size(), rows_per_chunk(width), [&](long begin, long end) {
        for (long row = begin; row < end; row++) {
            const T* source = x.data() + row * width;
            T* target = x_hat.data() + row * width;
            const T factor = T(1) / std::sqrt(dot(source, source, width) + eps);
            inverse.data()[row] = factor;
            transform<T>(0, width,
                         [&](auto lanes) { lanes.store(target, lanes.load(source) * factor); });
        }
    });
}

// s, c (N, J, D), h (N, T, D), alpha (N, J, T).
template <class T>
void cosine_forward(In<T> s, In<T> h, std::optional<StridedIn<bool>> mask,
                    std::optional<Indices> lengths, double eps, Out<T> s_hat, Out<T> h_hat,
                    Out<T> inv_s, Out<T> inv_h, Out<T> alpha, Out<T> c) {
    const Check check;
    Size n{"N"}, j{"J"}, t{"T"}, d{"D"};
    check.shape("alpha", alpha, n, j, t);
    check.shape("s", s, n, j, d);
    check.shape("h", h, n, t, d);
    check.shape("s_hat", s_hat, n, j, d);
    check.shape("h_hat", h_hat, n, t, d);
    check.values("inv_s", inv_s, n, j);
    check.values("inv_h", inv_h, n, t);
    check.shape("c", c, n, j, d);
    const long states = j, steps = t, width = d;
    const AttentionMask attention_mask(check, n, states, steps, lengths, mask);
    const KernelScope scope(alpha.size() * width);
    to_length_1(s, s_hat, inv_s, T(eps));
    to_length_1(h, h_hat, inv_h, T(eps));
    parallel_for(alpha.shape(0) * states, rows_per_chunk(steps * width), [&](long begin, long end) {
        for (long row = begin; row < end; row++) {
            const long n = row / states, j = row % states, first = n * steps * width;
            T* weights = alpha.data() + row * steps;
            for (long i = 0; i < steps; i++) {
                const bool visible =
                    i < attention_mask.visible_keys(n) && attention_mask.visible(n, j, i);
                weights[i] = visible ? dot(s_hat.data() + row * width,
                                           h_hat.data() + first + i * width, width)
                                     : -std::numeric_limits<T>::infinity();
            }
            softmax_in_place(weights, steps);
            weighted_sum(weights, h.data() + first, attention_mask.visible_keys(n), width,
                         c.data() + row * width);
        }
    });
}

// dx += (dx̂ − x̂ Σ dx̂ x̂) · inverse.
template <class T>
void add_through_length(const T* dx_hat, const T* x_hat, T inverse, long width, T* dx) {
    const T along = dot(dx_hat, x_hat, width);
    transform<T>(0, width, [&](auto lanes) {
        lanes.store(dx,
                    lanes.load(dx) + (lanes.load(dx_hat) - lanes.load(x_hat) * along) * inverse);
    });
}

template <class T>
void cosine_backward(In<T> dc, In<T> h, In<T> s_hat, In<T> h_hat, In<T> inv_s, In<T> inv_h,
                     In<T> alpha, Out<T> ds, Out<T> dh) {
    const Check check;
    Size batch{"N"}, j{"J"}, t{"T"}, d{"D"};
    check.shape("alpha", alpha, batch, j, t);
    check.shape("dc", dc, batch, j, d);
    check.shape("h", h, batch, t, d);
    check.shape("s_hat", s_hat, batch, j, d);
    check.shape("h_hat", h_hat, batch, t, d);
    check.values("inv_s", inv_s, batch, j);
    check.values("inv_h", inv_h, batch, t);
    check.shape("ds", ds, batch, j, d);
    check.shape("dh", dh, batch, t, d);
    const long states = j, steps = t, width = d;
    const KernelScope scope(alpha.size() * width);
    const long work = (states + 1) * steps * width;
    parallel_for(alpha.shape(0), rows_per_chunk(work), [&](long begin, long end) {
        T* dscores = thread_workspace<T>(WorkspaceSlot::kRow, steps + (steps + 1) * width);
        T* dh_hat = dscores + steps;
        T* ds_hat = dh_hat + steps * width;
        for (long n = begin; n < end; n++) {
            const long first = n * steps * width;
            std::fill_n(dh_hat, steps * width, T(0));
            std::fill_n(dh.data() + first, steps * width, T(0));
            for (long row = n * states; row < (n + 1) * states; row++) {
                const T* weights = alpha.data() + row * steps;
                const T* dc_row = dc.data() + row * width;
                const T* own = s_hat.data() + row * width;
                score_gradients(weights, dc_row, h.data() + first, steps, width, dscores);
                std::fill_n(ds_hat, width, T(0));
                for (long i = 0; i < steps; i++) {
                    if (weights[i] == T(0)) continue;
                    add_scaled(weights[i], dc_row, width, dh.data() + first + i * width);
                    add_scaled(dscores[i], own, width, dh_hat + i * width);
                    add_scaled(dscores[i], h_hat.data() + first + i * width, width, ds_hat);
                }
                std::fill_n(ds.data() + row * width, width, T(0));
                add_through_length(ds_hat, own, inv_s.data()[row], width, ds.data() + row * width);
            }
            for (long i = 0; i < steps; i++)
                add_through_length(dh_hat + i * width, h_hat.data() + first + i * width,
                                   inv_h.data()[n * steps + i], width,
                                   dh.data() + first + i * width);
        }
    });
}

const KernelRegistrar registrars[] = {
    {"cosine_attention_forward", cosine_forward<float>, cosine_forward<double>},
    {"cosine_attention_backward", cosine_backward<float>, cosine_backward<double>},
};

}  // namespace
}  // namespace handgrad
