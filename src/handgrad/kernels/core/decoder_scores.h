// The scores of models/decoder_scores.py: how well a decoder's state fits each of the keys.
//
// forward(query, s, keys, count, scores) is for one sequence at one step, with `count` keys, the
// rows of `keys`. backward takes the gradients of the scores and adds to `ds`, or writes `dquery`
// where the score has a query of its own: W_s s, which the step's product made beside the cell's
// part.
#pragma once

#include <cmath>

#include "core/elementwise.h"
#include "core/vectormath.h"

namespace handgrad {

// y += Σ_i a_i x_i over the rows of x.
template <class T>
void add_rows(const T* a, const T* x, long count, long width, T* y) {
    for_lanes<T>(0, width, [=](auto lanes) {
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

// score_i = v·u_i,  u_i = tanh(k_i + query). u, one value for every pair and every unit, is
// computed again in backward: to write it and to read it back would take as long.
template <class T>
struct AdditiveScore {
    static constexpr bool kHasQuery = true;
    long size;
    const T* v;

    void forward(const T* query, const T*, const T* keys, long count, T* scores) const {
        for (long i = 0; i < count; i++)
            scores[i] = sum<T>(0, size, [&](auto lanes) {
                return Vec<T>(lanes.load(v) * u(lanes, query, keys + i * size));
            });
    }

    // da_i = dscore_i (1 − u_i²),  dkeys += da,  dquery = v Σ_i da_i,  dv += Σ_i dscore_i u_i;
    // dkeys is without its factor v, which is the same for all steps and comes last.
    void backward(const T* query, const T*, const T* keys, long count, T* dscores, T* dquery, T*,
                  T* dkeys, T* dv) const {
        for_lanes<T>(0, size, [&](auto lanes) {
            Vec<T> sum{}, sum_v = lanes.load(dv);
            for (long i = 0; i < count; i++) {
                const Vec<T> u_i = u(lanes, query, keys + i * size);
                const Vec<T> da = dscores[i] * (T(1) - u_i * u_i);
                lanes.store(dkeys + i * size, lanes.load(dkeys + i * size) + da);
                sum += da;
                sum_v += dscores[i] * u_i;
            }
            lanes.store(dquery, lanes.load(v) * sum);
            lanes.store(dv, sum_v);
        });
    }

  private:
    template <class Lanes>
    Vec<T> u(const Lanes& lanes, const T* query, const T* key) const {
        return tanh(Vec<T>(lanes.load(key) + lanes.load(query)));
    }
};

// score_i = k_i·s, and with `kCosine` k_i·ŝ, ŝ = s/√(|s|² + eps). backward leaves in dscores what
// s is to be multiplied with for dkeys.
template <class T, bool kCosine>
struct ProductScore {
    static constexpr bool kHasQuery = false;
    long size;
    const T* v;

    void forward(const T*, const T* s, const T* keys, long count, T* scores) const {
        row_products(keys, s, count, size, inverse_length(s), scores);
    }

    // dŝ = Σ_i dscore_i k_i,  ds = (dŝ − ŝ Σ dŝ ŝ)/|s|.
    void backward(const T*, const T* s, const T* keys, long count, T* dscores, T*, T* ds, T*,
                  T*) const {
        if (!kCosine) {
            add_rows(dscores, keys, count, size, ds);
            return;
        }
        const T scale = inverse_length(s);
        T* ds_hat = scratch<T>(Scratch::kRow, size);
        std::fill_n(ds_hat, size, T(0));
        add_rows(dscores, keys, count, size, ds_hat);
        const T along = scale * scale * sum<T>(0, size, [=](auto lanes) {
                            return Vec<T>(lanes.load(ds_hat) * lanes.load(s));
                        });
        for_lanes<T>(0, size, [=](auto lanes) {
            const Vec<T> change = (lanes.load(ds_hat) - along * lanes.load(s)) * scale;
            lanes.store(ds, lanes.load(ds) + change);
        });
        for (long i = 0; i < count; i++) dscores[i] *= scale;
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
