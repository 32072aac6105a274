// Forward for a query or two, as in decoding: a row of scores, a sum of rows. Keys and values are
// read once, where they are.
#pragma once

#include <cmath>

#include "core/attention/call.h"
#include "core/elementwise/elementwise.h"
#include "core/simd/vectormath.h"

namespace handgrad::attention {

// Up to so many queries this is quicker than blocks that are mostly empty.
constexpr long kFewQueries = 2;

template <class T>
void forward_query(const Call<T>& call, long n, long h, long t, T* y, T* log_sum) {
    const long group = h / call.repeats(), keys = call.visible_keys(n, t);
    const T* q = call.q.at(n, h, t);
    T* scores = thread_workspace<T>(WorkspaceSlot::kRow, keys);
    const auto masked = [&](long j) {
        return call.mask.data != nullptr && !call.mask.at(n, h, t)[j * call.mask.step];
    };
    for (long j = 0; j < keys; j++) {
        const T* row = call.k.at(n, group, j);
        Vec<T> dot{};
        transform<T>(0, call.features, [&](auto lanes) { dot += lanes.load(q) * lanes.load(row); });
        scores[j] = call.scale * lane_sum(dot);
        if (call.bias.data != nullptr) scores[j] += call.bias.at(n, h, t)[j * call.bias.step];
        if (masked(j)) scores[j] = -kInfinity<T>;
    }
    const T best = reduce_max(scores, keys);
    const T shift = best == -kInfinity<T> ? T(0) : best;
    const T all = reduce_sum<T>(0, keys, [&](auto lanes) {
        const Vec<T> weight = exp_weight(Vec<T>(lanes.load(scores) - shift));
        lanes.store(scores, weight);
        return weight;
    });
    *log_sum = all == T(0) ? kInfinity<T> : best + std::log(all);
    const T factor = all == T(0) ? T(0) : T(1) / all;
    if (call.drops()) {
        const bool* keep = call.keep.at(n, h, t);
        for (long j = 0; j < keys; j++) scores[j] = keep[j] ? scores[j] * call.keep_scale : T(0);
    }
    transform<T>(0, call.values, [&](auto lanes) {
        Vec<T> sum{};
        for (long j = 0; j < keys; j++) sum += scores[j] * lanes.load(call.v.at(n, group, j));
        lanes.store(y, sum * factor);
    });
}

}  // namespace handgrad::attention
