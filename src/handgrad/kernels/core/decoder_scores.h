// The scores of models/decoder_scores.py: how well a decoder's state fits each of the keys.
//
// prepare(keys, count, powers) is for one sequence before its first step; forward(query, s, keys,
// scores) is for one step of it. backward takes the gradients of the scores and adds to `ds`, or
// writes `dquery` where the score has a query of its own: W_s s, which the step's product made
// beside the cell's part.
#pragma once

#include <cmath>

#include "core/elementwise.h"
#include "core/vectormath.h"

namespace handgrad {

// y += Σ_i a_i x_i over the rows of x: four vectors of a row at a time, as each of their sums waits
// for itself, and what is left of a row by single ones.
template <class T>
void add_rows(const T* a, const T* x, long count, long width, T* y) {
    constexpr int n = kLanes<T>;
    long at = 0;
    for (; at + 4 * n <= width; at += 4 * n) {
        Vec<T> sums[4];
        for (int v = 0; v < 4; v++) sums[v] = load(y + at + v * n);
        for (long i = 0; i < count; i++)
            for (int v = 0; v < 4; v++) sums[v] += a[i] * load(x + i * width + at + v * n);
        for (int v = 0; v < 4; v++) store(y + at + v * n, sums[v]);
    }
    for_lanes<T>(at, width, [=](auto lanes) {
        Vec<T> sum = lanes.load(y);
        for (long i = 0; i < count; i++) sum += a[i] * lanes.load(x + i * width);
        lanes.store(y, sum);
    });
}

// y_i = scale · x_i·q for every row of x.
template <class T>
void row_products(const T* x, const T* q, long count, long width, T scale, T* y) {
    for (long i = 0; i < count; i++)
        y[i] = scale * sum<T>(0, width, [=](auto lanes) {
                   return Vec<T>(lanes.load(x + i * width) * lanes.load(q));
               });
}

// The first `count` keys of a sequence, one below the other, and for an additive score e^{2k} or
// null.
template <class T>
struct Keys {
    const T* rows;
    long count;
    const T* powers;
};

// score_i = v·u_i,  u_i = tanh(k_i + query) = 1 − 2/(1 + e^{2 k_i} e^{2 query}): the powers of the
// keys are made once and those of a query once for all keys, so that a pair costs a product and a
// reciprocal instead of a tanh: two fifths of its time. Its error is that of tanh near 1, at any u.
// Beyond kNear, where a product of powers might be too large or 0 · ∞, it is tanh.
// u, one value for every pair and every unit, is computed again in backward: to write it and to
// read it back would take as long.
template <class T>
struct AdditiveScore {
    static constexpr bool kHasQuery = true;
    static constexpr T kNear = T(20);
    long size;
    const T* v;

    Keys<T> prepare(const T* keys, long count, T* powers) const {
        return {keys, count, write_powers(keys, count * size, powers) ? powers : nullptr};
    }

    void forward(const T* query, const T*, const Keys<T>& keys, T* scores) const {
        with_u(query, keys, [&](auto u) {
            for (long i = 0; i < keys.count; i++)
                scores[i] = sum<T>(0, size,
                                   [&](auto lanes) { return Vec<T>(lanes.load(v) * u(lanes, i)); });
        });
    }

    // da_i = dscore_i (1 − u_i²),  dkeys += da,  dquery = v Σ_i da_i,  dv += Σ_i dscore_i u_i;
    // dkeys is without its factor v, which is the same for all steps and comes last.
    void backward(const T* query, const T*, const Keys<T>& keys, T* dscores, T* dquery, T*,
                  T* dkeys, T* dv) const {
        with_u(query, keys, [&](auto u) {
            for_lanes<T>(0, size, [&](auto lanes) {
                Vec<T> sum{}, sum_v = lanes.load(dv);
                for (long i = 0; i < keys.count; i++) {
                    const Vec<T> u_i = u(lanes, i);
                    const Vec<T> da = dscores[i] * (T(1) - u_i * u_i);
                    lanes.store(dkeys + i * size, lanes.load(dkeys + i * size) + da);
                    sum += da;
                    sum_v += dscores[i] * u_i;
                }
                lanes.store(dquery, lanes.load(v) * sum);
                lanes.store(dv, sum_v);
            });
        });
    }

  private:
    // powers = e^{2x}; false, and nothing written, where an x is beyond kNear or NaN.
    static bool write_powers(const T* x, long count, T* powers) {
        Vec<T> beyond{};
        for_lanes<T>(0, count, [&](auto lanes) {
            beyond = absolute(lanes.load(x)) <= kNear ? beyond : splat(T(1));
        });
        if (lane_max(beyond) != T(0)) return false;
        for_lanes<T>(0, count,
                     [=](auto lanes) { lanes.store(powers, exp(Vec<T>(T(2) * lanes.load(x)))); });
        return true;
    }

    // Calls use(u) with u(lanes, i), the lanes of u_i.
    template <class Use>
    void with_u(const T* query, const Keys<T>& keys, const Use& use) const {
        const long width = size;
        T* power = scratch<T>(Scratch::kRow, width);
        if (keys.powers != nullptr && write_powers(query, width, power))
            use([=, powers = keys.powers](auto lanes, long i) {
                const Vec<T> product = lanes.load(powers + i * width) * lanes.load(power);
                return Vec<T>(T(1) - T(2) * reciprocal(Vec<T>(T(1) + product)));
            });
        else
            use([=, rows = keys.rows](auto lanes, long i) {
                return tanh(Vec<T>(lanes.load(rows + i * width) + lanes.load(query)));
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

    Keys<T> prepare(const T* keys, long count, T*) const { return {keys, count, nullptr}; }

    void forward(const T*, const T* s, const Keys<T>& keys, T* scores) const {
        row_products(keys.rows, s, keys.count, size, inverse_length(s), scores);
    }

    // dŝ = Σ_i dscore_i k_i,  ds = (dŝ − ŝ Σ dŝ ŝ)/|s|.
    void backward(const T*, const T* s, const Keys<T>& keys, T* dscores, T*, T* ds, T*, T*) const {
        if (!kCosine) {
            add_rows(dscores, keys.rows, keys.count, size, ds);
            return;
        }
        const T scale = inverse_length(s);
        T* ds_hat = scratch<T>(Scratch::kRow, size);
        std::fill_n(ds_hat, size, T(0));
        add_rows(dscores, keys.rows, keys.count, size, ds_hat);
        const T along = scale * scale * sum<T>(0, size, [=](auto lanes) {
                            return Vec<T>(lanes.load(ds_hat) * lanes.load(s));
                        });
        for_lanes<T>(0, size, [=](auto lanes) {
            const Vec<T> change = (lanes.load(ds_hat) - along * lanes.load(s)) * scale;
            lanes.store(ds, lanes.load(ds) + change);
        });
        for (long i = 0; i < keys.count; i++) dscores[i] *= scale;
    }

  private:
    T inverse_length(const T* s) const {
        if (!kCosine) return T(1);
        constexpr T kEps = T(1e-8);  // as in ops/cosine_attention.py
        const T square =
            sum<T>(0, size, [=](auto lanes) { return Vec<T>(lanes.load(s) * lanes.load(s)); });
        return T(1) / std::sqrt(square + kEps);
    }
};

// Calls use(score) with the score of this code, its place in SCORES of models/decoder_scores.py.
template <class T, class Use>
void with_score(int code, long size, const T* v, const Use& use) {
    if (code == 0)
        use(AdditiveScore<T>{size, v});
    else if (code == 1)
        use(ProductScore<T, true>{size, v});
    else
        use(ProductScore<T, false>{size, v});
}

}  // namespace handgrad
