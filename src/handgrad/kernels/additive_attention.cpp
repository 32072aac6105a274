// Additive attention between its matrix products: u = tanh(a_s + a_h), scores, weights and sums.
#include "core/attention/state_attention.h"

namespace handgrad {
namespace {

// a_s (N, J, A), a_h (N, T, A), v (A), h (N, T, E); u (N, J, T, A), alpha (N, J, T), c (N, J, E).
template <class T>
void additive_forward(In<T> a_s, In<T> a_h, In<T> v, In<T> h, std::optional<StridedIn<bool>> mask,
                      std::optional<Indices> lengths, Out<T> u, Out<T> alpha, Out<T> c) {
    const Check check;
    Size n{"N"}, j{"J"}, t{"T"}, a{"A"}, e{"E"};
    check.shape("alpha", alpha, n, j, t);
    check.shape("v", v, a);
    check.shape("u", u, n, j, t, a);
    check.shape("h", h, n, t, e);
    check.shape("c", c, n, j, e);
    check.values("a_s", a_s, n, j, a);
    check.values("a_h", a_h, n, t, a);
    const long states = j, steps = t, size = a, width = e;
    const AttentionMask attention_mask(check, n, states, steps, lengths, mask);
    const KernelScope scope(u.size());
    parallel_for(alpha.shape(0) * states, rows_per_chunk(steps * size), [&](long begin, long end) {
        for (long row = begin; row < end; row++) {
            const long n = row / states, j = row % states;
            const T* own = a_s.data() + row * size;
            T* weights = alpha.data() + row * steps;
            for (long i = 0; i < steps; i++) {
                const T* other = a_h.data() + (n * steps + i) * size;
                T* hidden = u.data() + (row * steps + i) * size;
                const bool visible =
                    i < attention_mask.visible_keys(n) && attention_mask.visible(n, j, i);
                weights[i] = -std::numeric_limits<T>::infinity();
                if (!visible) {
                    std::fill_n(hidden, size, T(0));
                    continue;
                }
                weights[i] = reduce_sum<T>(0, size, [&](auto lanes) {
                    const Vec<T> value = tanh(Vec<T>(lanes.load(own) + lanes.load(other)));
                    lanes.store(hidden, value);
                    return Vec<T>(value * lanes.load(v.data()));
                });
            }
            softmax_in_place(weights, steps);
            weighted_sum(weights, h.data() + n * steps * width, attention_mask.visible_keys(n),
                         width, c.data() + row * width);
        }
    });
}

// da_s and da_h, the part of dh from the weighted sum, and dv of each sequence (N, A).
template <class T>
void additive_backward(In<T> dc, In<T> v, In<T> h, In<T> u, In<T> alpha, Out<T> da_s, Out<T> da_h,
                       Out<T> dh, Out<T> dv_parts) {
    const Check check;
    Size batch{"N"}, j{"J"}, t{"T"}, a{"A"}, e{"E"};
    check.shape("alpha", alpha, batch, j, t);
    check.shape("v", v, a);
    check.shape("u", u, batch, j, t, a);
    check.shape("h", h, batch, t, e);
    check.shape("dc", dc, batch, j, e);
    check.values("da_s", da_s, batch, j, a);
    check.values("da_h", da_h, batch, t, a);
    check.values("dh", dh, h.size());
    check.values("dv_parts", dv_parts, batch, a);
    const long states = j, steps = t, size = a, width = e;
    const KernelScope scope(u.size());
    parallel_for(alpha.shape(0), rows_per_chunk(states * steps * size), [&](long begin, long end) {
        T* dscores = thread_workspace<T>(WorkspaceSlot::kRow, steps);
        for (long n = begin; n < end; n++) {
            T* all_da_h = da_h.data() + n * steps * size;
            T* all_dh = dh.data() + n * steps * width;
            T* dv = dv_parts.data() + n * size;
            std::fill_n(all_da_h, steps * size, T(0));
            std::fill_n(all_dh, steps * width, T(0));
            std::fill_n(dv, size, T(0));
            for (long row = n * states; row < (n + 1) * states; row++) {
                const T* weights = alpha.data() + row * steps;
                const T* dc_row = dc.data() + row * width;
                T* own = da_s.data() + row * size;
                std::fill_n(own, size, T(0));
                score_gradients(weights, dc_row, h.data() + n * steps * width, steps, width,
                                dscores);
                for (long i = 0; i < steps; i++) {
                    if (weights[i] == T(0)) continue;
                    add_scaled(weights[i], dc_row, width, all_dh + i * width);
                    const T* hidden = u.data() + (row * steps + i) * size;
                    T* other = all_da_h + i * size;
                    const T dscore = dscores[i];
                    transform<T>(0, size, [&](auto lanes) {
                        const Vec<T> value = lanes.load(hidden);
                        const Vec<T> da = dscore * lanes.load(v.data()) * (T(1) - value * value);
                        lanes.store(dv, lanes.load(dv) + dscore * value);
                        lanes.store(own, lanes.load(own) + da);
                        lanes.store(other, lanes.load(other) + da);
                    });
                }
            }
        }
    });
}

const KernelRegistrar registrars[] = {
    {"additive_attention_forward", additive_forward<float>, additive_forward<double>},
    {"additive_attention_backward", additive_backward<float>, additive_backward<double>},
};

}  // namespace
}  // namespace handgrad
