// Backward: the weights again, from log Σ exp(score), and the gradients through them.
#pragma once

#include "core/attention/mask.h"
#include "core/attention/products.h"
#include "core/attention/rows.h"
#include "core/elementwise/elementwise.h"
#include "core/gemm/bf16.h"
#include "core/simd/vectormath.h"

namespace handgrad::attention {

// The arrays that backward has beside the call, and its outputs; null for a gradient that is not
// wanted.
template <class T>
struct Gradients {
    Heads<const T> y, dy;
    const T* log_sums;
    Heads<T> q, k, v, scores;
    bool through_scores() const {
        return q.data != nullptr || k.data != nullptr || scores.data != nullptr;
    }
};

// Rows of keys that a piece writes, `stride` apart; null where they are not wanted.
template <class T>
struct KeyGradients {
    T* data;
    long stride;
};

// One piece of work: its dQ, and its part of dK and dV. Element as for ForwardPiece.
template <class Element>
class BackwardPiece {
  public:
    using T = SumOf<Element>;

    BackwardPiece(Arena& arena, const Call<T>& call, const Gradients<T>& to, const Piece& piece)
        : call_(call),
          to_(to),
          piece_(piece),
          keys_(call.visible_keys(piece)),
          block_keys_(std::min(keys_, kBlockKeys<Element>)),
          q_columns_(arena, piece.units(), call.features),
          dy_columns_(arena, piece.units(), call.values),
          q_rows_(arena, piece.units(), call.features),
          dy_rows_(arena, piece.units(), call.values),
          log_sums_(arena.take<T>(piece.units() * kWide<T>)),
          expected_(arena.take<T>(piece.units() * kWide<T>)),
          k_rows_(arena, block_keys_, call.features),
          v_rows_(arena, block_keys_, call.values),
          k_columns_(arena, block_keys_, call.features),
          weights_(arena, block_keys_),
          dscores_(arena, block_keys_),
          modifiers_(arena, call, block_keys_),
          sums_q_(arena.take<T>(piece.units() * sum_q_size())),
          sums_k_(arena.take<T>(round_up(block_keys_, kTileKeys<Element>) * q_rows_.pitch())),
          sums_v_(arena.take<T>(round_up(block_keys_, kTileKeys<Element>) * dy_rows_.pitch())) {}

    void run(const KeyGradients<T>& dk, const KeyGradients<T>& dv) {
        const Registers<Element> registers;
        for (long u = 0; u < piece_.units(); u++) gather_queries(u);
        std::fill_n(sums_q_, piece_.units() * sum_q_size(), T(0));
        for (long key = 0; key < keys_; key += kBlockKeys<Element>) {
            const long here = std::min(kBlockKeys<Element>, keys_ - key);
            gather_keys(key, here);
            for (long u = 0; u < piece_.units(); u++) {
                breathe();
                add_block(u, key, here);
            }
            write_keys(dk, key, here, sums_k_, q_rows_.pitch(), call_.features);
            write_keys(dv, key, here, sums_v_, dy_rows_.pitch(), call_.values);
        }
        for (long key = keys_; key < call_.keys; key++) {
            if (dk.data != nullptr) std::fill_n(dk.data + key * dk.stride, call_.features, T(0));
            if (dv.data != nullptr) std::fill_n(dv.data + key * dv.stride, call_.values, T(0));
        }
        if (to_.q.data == nullptr) return;
        for (long u = 0; u < piece_.units(); u++) {
            const Block b = block(u);
            write_columns(to_.q.at(b.n, b.h, b.first), to_.q.row_stride, sums_q_ + u * sum_q_size(),
                          b.count, call_.features, [&](long) { return splat(call_.scale); });
        }
    }

  private:
    Block block(long u) const { return call_.block(piece_, piece_.first_unit + u); }
    long sum_q_size() const { return k_columns_.rows() * kWide<T>; }

    // Loads scale · Q and dY both ways round, and for each query log Σ exp(score) and Σ a da = Σ y
    // dy. The latter takes dY as rounded for the products: the part that all rows of V have in
    // common cancels in da − Σ a da.
    void gather_queries(long u) const {
        const Block b = block(u);
        load_queries(q_rows_.open(u), q_rows_.pitch(), call_.q.at(b.n, b.h, b.first),
                     call_.q.row_stride, b.count, call_.features, call_.scale);
        q_rows_.close(u);
        q_columns_.pack(u, q_rows_.open(u), q_rows_.pitch());
        const T* dy = dy_rows_.open(u);
        load_queries(dy_rows_.open(u), dy_rows_.pitch(), to_.dy.at(b.n, b.h, b.first),
                     to_.dy.row_stride, b.count, call_.values, T(1));
        dy_rows_.close(u);
        dy_columns_.pack(u, dy, dy_rows_.pitch());
        T* log_sums = log_sums_ + u * kWide<T>;
        T* expected = expected_ + u * kWide<T>;
        std::copy_n(to_.log_sums + call_.row(b), b.count, log_sums);
        std::fill_n(log_sums + b.count, kWide<T> - b.count, kInfinity<T>);
        std::fill_n(expected + b.count, kWide<T> - b.count, T(0));
        for (long i = 0; i < b.count; i++) {
            const T* y_row = to_.y.at(b.n, b.h, b.first + i);
            const T* dy_row = dy + i * dy_rows_.pitch();
            Vec<T> dot{};
            transform<T>(0, call_.values,
                         [&](auto lanes) { dot += lanes.load(y_row) * lanes.load(dy_row); });
            expected[i] = lane_sum(dot);
        }
    }

    void gather_keys(long key, long count) {
        const T* k = call_.k.at(piece_.n, piece_.group, key);
        const T* v = call_.v.at(piece_.n, piece_.group, key);
        k_rows_.pack(k, call_.k.row_stride, count);
        v_rows_.pack(v, call_.v.row_stride, count);
        k_columns_.pack(k, call_.k.row_stride, count);
        const long rows = round_up(count, kTileKeys<Element>);
        std::fill_n(sums_k_, rows * q_rows_.pitch(), T(0));
        std::fill_n(sums_v_, rows * dy_rows_.pitch(), T(0));
    }

    // A block of queries and `count` keys.
    void add_block(long u, long key, long count) const {
        const Block b = block(u);
        const long visible = std::min(call_.visible_keys(b) - key, count);
        if (visible <= 0) return;
        modifiers_.gather(b, key, visible);
        for (int panel = 0; panel * kNR<T> < b.count; panel++)
            add_panel(b, u, panel, key, std::min(call_.visible_keys(b, panel) - key, visible));
        // In causal order a tile of keys is masked for the first queries of the block.
        for (long j = 0; j < visible; j += kTileKeys<Element>) {
            const long keys = std::min(kTileKeys<Element>, visible - j);
            const long masked_queries = key + j - call_.offset - b.first;
            const long from = call_.causal ? std::clamp(masked_queries, 0L, long(b.count)) : 0;
            if (to_.v.data != nullptr)
                weights_.add_over_queries(j, keys, dy_rows_, u, from, b.count, sums_v_);
            if (to_.k.data != nullptr)
                dscores_.add_over_queries(j, keys, q_rows_, u, from, b.count, sums_k_);
        }
    }

    // Pᵀ and dSᵀ of a panel of queries, and what they add to dQ.
    void add_panel(const Block& b, long u, int panel, long key, long keys) const {
        if (keys <= 0) return;
        const long first = b.first + panel * kNR<T>;
        k_rows_.multiply(0, keys, q_columns_, u, panel, weights_.data());
        mask_scores(weights_.data(), panel, keys, modifiers_.bias(), call_.causal,
                    call_.offset + first + 1 - key);
        if (to_.through_scores()) v_rows_.multiply(0, keys, dy_columns_, u, panel, dscores_.data());
        differentiate(u, panel, keys);
        if constexpr (!std::is_same_v<Element, T>) clear_padding(b, panel, keys);
        if (to_.scores.data != nullptr) write_scores(b, panel, key, keys);
        if (to_.v.data != nullptr) weights_.close_for_queries(panel, keys);
        if (to_.k.data != nullptr) dscores_.close_for_queries(panel, keys);
        if (to_.q.data == nullptr) return;
        dscores_.close_for_keys(panel, keys);
        k_columns_.add_over_keys(0, keys, dscores_, panel, sums_q_ + u * sum_q_size());
    }

    // Scores become weights, and their gradients those of the scores: ds = a (da − Σ a da).
    void differentiate(long u, int panel, long keys) const {
        for (int i = 0; i < kNRVectors; i++) {
            const long lane = panel * kNR<T> + i * kLanes<T>;
            const Vec<T> log_sum = load(log_sums_ + u * kWide<T> + lane);
            const Vec<T> mean = load(expected_ + u * kWide<T> + lane);
            for (long j = 0; j < keys; j++) {
                T* score = weights_.data() + j * kWide<T> + lane;
                T* dscore = dscores_.data() + j * kWide<T> + lane;
                // No weight is above 1; the digits in which large scores differ from those of
                // forward, which sums in another order, would make it infinite.
                const Vec<T> exponent = load(score) - log_sum, highest{};
                const Vec<T> weight = exp_weight(Vec<T>(highest < exponent ? highest : exponent));
                if (modifiers_.keep() == nullptr) {
                    store(score, weight);
                    store(dscore, weight * (load(dscore) - mean));
                } else {
                    const Vec<T> factor = load(modifiers_.keep() + j * kWide<T> + lane);
                    store(score, weight * factor);
                    store(dscore, weight * (load(dscore) * factor - mean));
                }
            }
        }
    }

    // Products of bf16 read whole panels, also the lanes behind the last query, where the zeros of
    // padding have met the infinity of a key or value and are NaN.
    void clear_padding(const Block& b, int panel, long keys) const {
        const long first = panel * kNR<T>;
        const long used = std::min<long>(kNR<T>, b.count - first);
        for (long j = 0; used < kNR<T> && j < keys; j++) {
            std::fill_n(weights_.data() + j * kWide<T> + first + used, kNR<T> - used, T(0));
            std::fill_n(dscores_.data() + j * kWide<T> + first + used, kNR<T> - used, T(0));
        }
    }

    void write_scores(const Block& b, int panel, long key, long keys) const {
        const long first = panel * kNR<T>;
        for (long i = first; i < std::min<long>(first + kNR<T>, b.count); i++) {
            T* target = to_.scores.at(b.n, b.h, b.first + i) + key;
            const long visible = std::min(call_.visible_keys(b.n, b.first + i) - key, keys);
            for (long j = 0; j < visible; j++) target[j] = dscores_.data()[j * kWide<T> + i];
        }
    }

    static void write_keys(const KeyGradients<T>& to, long key, long count, const T* sums,
                           long pitch, long width) {
        if (to.data != nullptr)
            write_rows(to.data + key * to.stride, to.stride, sums, pitch, count, width);
    }

    const Call<T>& call_;
    const Gradients<T>& to_;
    const Piece& piece_;
    long keys_, block_keys_;
    QueryColumns<Element> q_columns_, dy_columns_;
    QueryRows<Element> q_rows_, dy_rows_;
    T *log_sums_, *expected_;
    KeyRows<Element> k_rows_, v_rows_;
    KeyColumns<Element> k_columns_;
    Weights<Element> weights_, dscores_;
    ScoreModifiers<T> modifiers_;
    T *sums_q_, *sums_k_, *sums_v_;
};

}  // namespace handgrad::attention
