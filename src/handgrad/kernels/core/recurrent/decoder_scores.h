// The scores of models/decoder_scores.py: how well a decoder's state fits each of the keys.
//
// prepare(keys, count, powers) is for one sequence before its first step; forward(query, s, keys,
// scores) is for one step of it. backward takes the gradients of the scores and adds to `ds`, or
// writes `dquery` where the score has a query of its own: W_s s, which the step's product made
// beside the cell's part.
#pragma once

#include <cmath>

#include "core/elementwise/elementwise.h"
#include "core/simd/vectormath.h"

namespace handgrad {

// A matrix whose rows are in one piece and `pitch` apart.
template <class T>
struct Rows {
    T* data;
    long pitch;
    T* operator[](long i) const { return data + i * pitch; }
};

// y = start + Σ_i a_i x_i over the rows of x: four vectors of a row at a time, as each of their
// sums waits for itself, and what is left of a row by single ones.
template <class T>
void add_rows(const T* start, const T* a, Rows<const T> x, long count, long width, T* y) {
    constexpr int n = kLanes<T>;
    long at = 0;
    for (; at + 4 * n <= width; at += 4 * n) {
        Vec<T> sums[4];
        for (int v = 0; v < 4; v++) sums[v] = load(start + at + v * n);
        for (long i = 0; i < count; i++)
            for (int v = 0; v < 4; v++) sums[v] += a[i] * load(x[i] + at + v * n);
        for (int v = 0; v < 4; v++) store(y + at + v * n, sums[v]);
    }
    transform<T>(at, width, [=](auto lanes) {
        Vec<T> sum = lanes.load(start);
        for (long i = 0; i < count; i++) sum += a[i] * lanes.load(x[i]);
        lanes.store(y, sum);
    });
}

// y_i = scale · x_i·q for every row of x: four rows at a time, as each of their sums waits for
// itself.
template <class T>
void row_products(Rows<const T> x, const T* q, long count, long width, T scale, T* y) {
    const auto some = [=]<long kRows>(long i, std::integral_constant<long, kRows>) {
        Vec<T> sums[kRows] = {};
        transform<T>(0, width, [&](auto lanes) {
            const Vec<T> q_here = lanes.load(q);
            for (long r = 0; r < kRows; r++) sums[r] += lanes.load(x[i + r]) * q_here;
        });
        for (long r = 0; r < kRows; r++) y[i + r] = scale * lane_sum(sums[r]);
    };
    long i = 0;
    for (; i + 4 <= count; i += 4) some(i, std::integral_constant<long, 4>{});
    for (; i < count; i++) some(i, std::integral_constant<long, 1>{});
}

// Rows that are gone through again and again lie this far apart: no power of two, which the
// first-level cache would put on top of one another.
template <class T>
long apart(long width) {
    return (width + kLanes<T> - 1) / kLanes<T> * kLanes<T> + kLanes<T>;
}

// The first `count` keys of a sequence, and for an additive score e^{2k} of each, or null.
template <class T>
struct Keys {
    Rows<const T> rows;
    long count;
    Rows<const T> powers;
};

// score_i = v·u_i,  u_i = tanh(k_i + query) = 1 − 2 r_i,  r_i = 1/(1 + e^{2 k_i} e^{2 query}): the
// powers of the keys are made once and those of a query once for all keys, so that a query and key
// cost a product and a reciprocal instead of a tanh: two fifths of its time. Its error is that of
// tanh near 1, at any u. Beyond kNear, where a product of powers might be too large or 0 · ∞, it is
// tanh.
// r, one value for every query, key and unit, is computed again in backward: to write it and to
// read it back would take as long.
template <class T>
struct AdditiveScore {
    static constexpr bool kHasQuery = true;
    static constexpr T kNear = T(20);
    long size;
    const T* v;

    Keys<T> prepare(Rows<const T> keys, long count, Rows<T> powers) const {
        for (long i = 0; i < count; i++)
            if (!write_powers(keys[i], size, powers[i])) return {keys, count, {nullptr, 0}};
        return {keys, count, {powers.data, powers.pitch}};
    }

    // Without the common term Σ v of all scores, which does not change their softmax.
    void forward(const T* query, const T*, const Keys<T>& keys, T* scores) const {
        with_r(query, keys, [&](auto r) {
            for (long i = 0; i < keys.count; i++)
                scores[i] = T(-2) * reduce_sum<T>(0, size, [&](auto lanes) {
                                return Vec<T>(lanes.load(v) * r(lanes, i));
                            });
        });
    }

    // da_i = dscore_i v (1 − u_i²) = 4 v dscore_i (r_i − r_i²),  dkeys += da,  dquery = Σ_i da_i,
    // dv += Σ_i dscore_i u_i = −2 Σ_i dscore_i r_i, as the dscores of a step sum to 0; dkeys and dv
    // are without their factors 4 v and −2, which are the same for all steps and come last.
    void backward(const T* query, const T*, const Keys<T>& keys, T* dscores, T* dquery, T*,
                  Rows<T> dkeys, T* dv) const {
        constexpr int n = kLanes<T>, kWide = 4;
        with_r(query, keys, [&](auto r) {
            long at = 0;
            for (; at + kWide * n <= size; at += kWide * n)
                add_units<kWide>(FullVector<T>{at}, r, keys.count, dscores, dquery, dkeys, dv);
            transform<T>(at, size, [&](auto lanes) {
                add_units<1>(lanes, r, keys.count, dscores, dquery, dkeys, dv);
            });
        });
    }

  private:
    // backward for the units of some vectors that stand side by side.
    template <int Vectors, class Lanes, class R>
    void add_units(Lanes first, const R& r, long count, const T* dscores, T* dquery, Rows<T> dkeys,
                   T* dv) const {
        const auto lanes = [=](int k) {
            Lanes next = first;
            next.at += k * kLanes<T>;
            return next;
        };
        Vec<T> sums[Vectors] = {}, sums_v[Vectors];
        for (int k = 0; k < Vectors; k++) sums_v[k] = lanes(k).load(dv);
        for (long i = 0; i < count; i++)
            for (int k = 0; k < Vectors; k++) {
                const Vec<T> r_i = r(lanes(k), i);
                const Vec<T> slope = r_i - r_i * r_i;
                lanes(k).store(dkeys[i], lanes(k).load(dkeys[i]) + dscores[i] * slope);
                sums[k] += dscores[i] * slope;
                sums_v[k] += dscores[i] * r_i;
            }
        for (int k = 0; k < Vectors; k++) {
            lanes(k).store(dquery, T(4) * lanes(k).load(v) * sums[k]);
            lanes(k).store(dv, sums_v[k]);
        }
    }

    // powers = e^{2x}; false, with nothing written, where an x is beyond kNear or NaN.
    static bool write_powers(const T* x, long count, T* powers) {
        Vec<T> beyond{};
        transform<T>(0, count, [&](auto lanes) {
            beyond = absolute(lanes.load(x)) <= kNear ? beyond : splat(T(1));
        });
        if (lane_max(beyond) != T(0)) return false;
        transform<T>(0, count, [=](auto lanes) {
            lanes.store(powers, exp_weight(Vec<T>(T(2) * lanes.load(x))));
        });
        return true;
    }

    // Calls use(r) with r(lanes, i), the lanes of r_i.
    template <class Use>
    void with_r(const T* query, const Keys<T>& keys, const Use& use) const {
        T* power = thread_workspace<T>(WorkspaceSlot::kRow, size);
        if (keys.powers.data != nullptr && write_powers(query, size, power))
            use([=, powers = keys.powers](auto lanes, long i) {
                const Vec<T> product = lanes.load(powers[i]) * lanes.load(power);
                return reciprocal(Vec<T>(T(1) + product));
            });
        else
            use([=, rows = keys.rows](auto lanes, long i) {
                const Vec<T> u = tanh(Vec<T>(lanes.load(rows[i]) + lanes.load(query)));
                return Vec<T>((T(1) - u) * T(0.5));
            });
    }
};

// score_i = k_i·s, and with `kCosine` k_i·ŝ, ŝ = s/√(|s|² + eps). backward leaves in dscores what
// s is to be multiplied with for dkeys.
template <class T, bool kCosine>
struct ProductScore {
    static constexpr bool kHasQuery = false;
    long size;
    const T* v;

    Keys<T> prepare(Rows<const T> keys, long count, Rows<T>) const {
        return {keys, count, {nullptr, 0}};
    }

    void forward(const T*, const T* s, const Keys<T>& keys, T* scores) const {
        row_products(keys.rows, s, keys.count, size, inverse_length(s), scores);
    }

    // dŝ = Σ_i dscore_i k_i,  ds = (dŝ − ŝ Σ dŝ ŝ)/|s|.
    void backward(const T*, const T* s, const Keys<T>& keys, T* dscores, T*, T* ds, Rows<T>,
                  T*) const {
        if (!kCosine) {
            add_rows(ds, dscores, keys.rows, keys.count, size, ds);
            return;
        }
        const T scale = inverse_length(s);
        T* ds_hat = thread_workspace<T>(WorkspaceSlot::kRow, size);
        std::fill_n(ds_hat, size, T(0));
        add_rows(ds_hat, dscores, keys.rows, keys.count, size, ds_hat);
        const T along = scale * scale * reduce_sum<T>(0, size, [=](auto lanes) {
                            return Vec<T>(lanes.load(ds_hat) * lanes.load(s));
                        });
        transform<T>(0, size, [=](auto lanes) {
            const Vec<T> change = (lanes.load(ds_hat) - along * lanes.load(s)) * scale;
            lanes.store(ds, lanes.load(ds) + change);
        });
        for (long i = 0; i < keys.count; i++) dscores[i] *= scale;
    }

  private:
    T inverse_length(const T* s) const {
        if (!kCosine) return T(1);
        constexpr T kEps = T(1e-8);  // as in ops/cosine_attention.py
        const T square = reduce_sum<T>(
            0, size, [=](auto lanes) { return Vec<T>(lanes.load(s) * lanes.load(s)); });
        return T(1) / std::sqrt(square + kEps);
    }
};

// The codes of scores, as models/decoder_scores.py numbers them.
constexpr int kAdditive = 0, kScores = 3;

// Calls use(score) with the score of this code, its index in SCORES of models/decoder_scores.py.
template <class T, class Use>
void with_score(int code, long size, const T* v, const Use& use) {
    if (code == kAdditive)
        use(AdditiveScore<T>{size, v});
    else if (code == 1)
        use(ProductScore<T, true>{size, v});
    else
        use(ProductScore<T, false>{size, v});
}

}  // namespace handgrad
