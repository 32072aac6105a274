// The modifiers of each score, one for every query and key: a bias, a mask, dropout.
#pragma once

#include "core/attention/arena.h"
#include "core/attention/call.h"
#include "core/gemm/pack.h"

namespace handgrad::attention {

// These values for a block of queries and some keys, a row per key and a lane per query; null if
// the call has none.
template <class T>
class ScoreModifiers {
  public:
    ScoreModifiers(Arena& arena, const Call<T>& call, long keys)
        : call_(call),
          bias_(call.has_bias_or_mask() ? arena.take<T>(keys * kWide<T>) : nullptr),
          keep_(call.drops() ? arena.take<T>(keys * kWide<T>) : nullptr),
          rows_(call.has_bias_or_mask() || call.drops()
                    ? arena.take<T>(kWide<T> * round_up(keys, kLanes<T>))
                    : nullptr) {}

    // The term added to each score: the bias, and −∞ where the mask forbids.
    const T* bias() const { return bias_; }
    // The factor of each weight: 0 where it is dropped.
    const T* keep() const { return keep_; }

    void gather(const Block& b, long first_key, long keys) const {
        if (bias_ != nullptr)
            turn(bias_, b, keys, [&](T* row, long t) { read_bias(row, b, t, first_key, keys); });
        if (keep_ != nullptr)
            turn(keep_, b, keys, [&](T* row, long t) {
                const bool* keep = call_.keep.at(b.n, b.h, t) + first_key;
                for (long k = 0; k < keys; k++) row[k] = keep[k] ? call_.keep_scale : T(0);
            });
    }

  private:
    // read(row of keys, query) for every query; zeros beyond the queries.
    template <class Read>
    void turn(T* values, const Block& b, long keys, const Read& read) const {
        const long pitch = round_up(keys, kLanes<T>);
        for (int i = 0; i < b.count; i++) read(rows_ + i * pitch, b.first + i);
        StridedPack<T>{rows_, pitch, 1}(values, kWide<T>, 0, b.count, 0, keys);
    }

    void read_bias(T* row, const Block& b, long t, long first_key, long keys) const {
        if (call_.bias.data == nullptr) {
            std::fill_n(row, keys, T(0));
        } else {
            const T* bias = call_.bias.at(b.n, b.h, t) + first_key * call_.bias.step;
            for (long k = 0; k < keys; k++) row[k] = bias[k * call_.bias.step];
        }
        if (call_.mask.data == nullptr) return;
        const bool* mask = call_.mask.at(b.n, b.h, t) + first_key * call_.mask.step;
        for (long k = 0; k < keys; k++) row[k] = mask[k * call_.mask.step] ? row[k] : -kInfinity<T>;
    }

    const Call<T>& call_;
    T *bias_, *keep_, *rows_;
};

// Adds the bias and masks keys with −∞. `visible` is the number of these keys visible to the first
// query of the panel in causal order; each next query has one more.
template <class T>
void mask_scores(T* scores, int panel, long keys, const T* bias, bool causal, long visible) {
    constexpr int n = kLanes<T>;
    const Vec<T> masked = splat(-kInfinity<T>);
    const long at = panel * kNR<T>;
    if (bias != nullptr)
        for (long k = 0; k < keys; k++)
            for (int v = 0; v < kNRVectors; v++) {
                T* score = scores + k * kWide<T> + at + v * n;
                const Vec<T> more = load(bias + k * kWide<T> + at + v * n);
                store(score, more == -kInfinity<T> ? masked : Vec<T>(load(score) + more));
            }
    if (!causal) return;
    const Vec<T> lanes = lane_numbers<T>();
    for (long k = std::max(visible, 0L); k < keys; k++)
        for (int v = 0; v < kNRVectors; v++) {
            T* score = scores + k * kWide<T> + at + v * n;
            const T needed = static_cast<T>(k + 1 - visible - v * n);
            store(score, lanes < needed ? masked : load(score));
        }
}

}  // namespace handgrad::attention
