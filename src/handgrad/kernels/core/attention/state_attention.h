// The shared part of the attention of states to states: scores of one state to weights, and back.
#pragma once

#include <cmath>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/lengths.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"
#include "core/simd/vectormath.h"

namespace handgrad {

// The keys h (N, T, ·) visible to each of s (N, J, ·): `mask` broadcasts to (N, J, T).
struct AttentionMask {
    long keys;
    const std::int64_t* lengths;
    const bool* mask = nullptr;
    long mask_batch = 0, mask_state = 0, mask_step = 0;

    AttentionMask(const Check& check, long batch, long states, long all,
                  const std::optional<Indices>& some, const std::optional<StridedIn<bool>>& given)
        : keys(all), lengths(checked_lengths(some, batch, all)) {
        if (!given) return;
        check.shape("mask", given, batch, states, all);
        mask = given->data();
        mask_batch = given->stride(0);
        mask_state = given->stride(1);
        mask_step = given->stride(2);
    }
    long visible_keys(long n) const { return lengths == nullptr ? keys : long(lengths[n]); }
    bool visible(long n, long j, long i) const {
        return mask == nullptr || mask[n * mask_batch + j * mask_state + i * mask_step];
    }
};

// The scores of one state, −∞ where masked, become weights; all 0 where all are masked.
template <class T>
void softmax_in_place(T* scores, long count) {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    const T best = reduce_max(scores, count);
    const T shift = best == kNone ? T(0) : best;
    const T all = reduce_sum<T>(0, count, [&](auto lanes) {
        const Vec<T> weight = exp(Vec<T>(lanes.load(scores) - shift));
        lanes.store(scores, weight);
        return weight;
    });
    const T factor = all == T(0) ? T(1) : T(1) / all;
    transform<T>(0, count, [&](auto lanes) { lanes.store(scores, lanes.load(scores) * factor); });
}

// c = Σ_i weights_i h_i over the rows of h.
template <class T>
void weighted_sum(const T* weights, const T* h, long count, long width, T* c) {
    transform<T>(0, width, [&](auto lanes) {
        Vec<T> sum{};
        for (long i = 0; i < count; i++) sum += weights[i] * lanes.load(h + i * width);
        lanes.store(c, sum);
    });
}

// target += factor · source.
template <class T>
void add_scaled(T factor, const T* source, long width, T* target) {
    transform<T>(0, width, [&](auto lanes) {
        lanes.store(target, lanes.load(target) + factor * lanes.load(source));
    });
}

template <class T>
T dot(const T* a, const T* b, long width) {
    return reduce_sum<T>(0, width,
                         [&](auto lanes) { return Vec<T>(lanes.load(a) * lanes.load(b)); });
}

// dscore = α (dα − Σ α dα) with dα_i = dc·h_i, for the keys of one state.
template <class T>
void score_gradients(const T* weights, const T* dc, const T* h, long count, long width,
                     T* dscores) {
    T expected = T(0);
    for (long i = 0; i < count; i++) {
        dscores[i] = weights[i] == T(0) ? T(0) : dot(dc, h + i * width, width);
        expected += weights[i] * dscores[i];
    }
    for (long i = 0; i < count; i++) dscores[i] = weights[i] * (dscores[i] - expected);
}

}  // namespace handgrad
