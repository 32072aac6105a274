// The online softmax, over keys that come a block at a time.
// Source: Milakov, Gimelshein, Online normalizer calculation for softmax (2018).
#pragma once

#include "core/attention/call.h"
#include "core/simd/vectormath.h"

namespace handgrad::attention {

// For each query of a block the largest score and the sum of the weights so far.
template <class T>
class OnlineSoftmax {
  public:
    OnlineSoftmax() {
        for (auto& panel : best_)
            for (auto& highest : panel) highest = splat(-kInfinity<T>);
    }

    // Turns the next scores of a panel into weights, and scales down what was summed with the
    // weights before them: `rows` rows of sums.
    void add(T* scores, int panel, long keys, T* sums, long rows) {
        constexpr int n = kLanes<T>;
        constexpr long wide = kWide<T>;
        scores += panel * kNR<T>;
        sums += panel * kNR<T>;
        Vec<T> highest[kNRVectors], shift[kNRVectors], sum[kNRVectors] = {};
        for (int i = 0; i < kNRVectors; i++)
            highest[i] = maximum(reduce_max(scores + i * n, keys), best_[panel][i]);
        for (int i = 0; i < kNRVectors; i++)
            shift[i] = highest[i] == -kInfinity<T> ? Vec<T>{} : highest[i];
        for (long j = 0; j < keys; j++)
            for (int i = 0; i < kNRVectors; i++) {
                T* score = scores + j * wide + i * n;
                const Vec<T> weight = exp_weight(Vec<T>(load(score) - shift[i]));
                sum[i] += weight;
                store(score, weight);
            }
        for (int i = 0; i < kNRVectors; i++) {
            const Vec<T> smaller = exp_weight(Vec<T>(best_[panel][i] - shift[i]));
            best_[panel][i] = highest[i];
            total_[panel][i] = total_[panel][i] * smaller + sum[i];
            for (long f = 0; f < rows; f++) {
                T* value = sums + f * wide + i * n;
                store(value, load(value) * smaller);
            }
        }
    }

    // For the lanes from `at` on: log Σ exp(score), and one over the sum of the weights; ∞ and 0
    // where no key was visible.
    Vec<T> log_sum(long at) const {
        const Vec<T> all = total(at), kept = best(at) + log(all);
        return all == T(0) ? splat(kInfinity<T>) : kept;
    }
    Vec<T> factor(long at) const {
        const Vec<T> all = total(at);
        return all == T(0) ? Vec<T>{} : Vec<T>(T(1) / all);
    }

  private:
    // The maximum of every lane over some rows. Several chains, as each maximum waits for the one
    // before it.
    static Vec<T> reduce_max(const T* scores, long rows) {
        constexpr int kChains = 4;
        Vec<T> highest[kChains];
        for (auto& one : highest) one = splat(-kInfinity<T>);
        long j = 0;
        for (; j + kChains <= rows; j += kChains)
            for (int c = 0; c < kChains; c++)
                highest[c] = maximum(load(scores + (j + c) * kWide<T>), highest[c]);
        for (; j < rows; j++) highest[0] = maximum(load(scores + j * kWide<T>), highest[0]);
        for (int c = 1; c < kChains; c++) highest[0] = maximum(highest[c], highest[0]);
        return highest[0];
    }

    static long vector_of(long at) { return at % kNR<T> / kLanes<T>; }
    Vec<T> best(long at) const { return best_[at / kNR<T>][vector_of(at)]; }
    Vec<T> total(long at) const { return total_[at / kNR<T>][vector_of(at)]; }

    Vec<T> best_[kPanels][kNRVectors], total_[kPanels][kNRVectors] = {};
};

}  // namespace handgrad::attention
