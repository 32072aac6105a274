// Forward: y and log Σ exp(score) of each query.
#pragma once

#include "core/attention/mask.h"
#include "core/attention/products.h"
#include "core/attention/rows.h"
#include "core/attention/softmax.h"
#include "core/gemm/bf16.h"

namespace handgrad::attention {

// One piece of work. Element is what operands hold: a number or, in bf16, a Bf16x2.
template <class Element>
class ForwardPiece {
  public:
    using T = SumOf<Element>;

    ForwardPiece(Arena& arena, const Call<T>& call, const Piece& piece)
        : call_(call),
          piece_(piece),
          keys_(call.visible_keys(piece)),
          pitch_(round_up(call.features, kLanes<T>)),
          k_(arena, keys_, call.features),
          v_(arena, keys_, call.values),
          q_(arena, 1, call.features),
          rows_(arena.take<T>(kWide<T> * pitch_)),
          weights_(arena, std::min(keys_, kBlockKeys<Element>)),
          modifiers_(arena, call, std::min(keys_, kBlockKeys<Element>)),
          sums_(arena.take<T>(v_.rows() * kWide<T>)) {}

    void run(const Heads<T>& y, T* log_sums) {
        const Registers<Element> registers;
        k_.pack(call_.k.at(piece_.n, piece_.group), call_.k.row_stride, keys_);
        v_.pack(call_.v.at(piece_.n, piece_.group), call_.v.row_stride, keys_);
        for (long unit = piece_.first_unit; unit < piece_.last_unit; unit++) {
            const Block b = call_.block(piece_, unit);
            load_queries(rows_, pitch_, call_.q.at(b.n, b.h, b.first), call_.q.row_stride, b.count,
                         call_.features, call_.scale);
            q_.pack(0, rows_, pitch_);
            std::fill_n(sums_, v_.rows() * kWide<T>, T(0));
            OnlineSoftmax<T> softmax;
            for (long key = 0; key < call_.visible_keys(b); key += kBlockKeys<Element>) {
                breathe();
                add_keys(b, key, softmax);
            }
            write_columns(y.at(b.n, b.h, b.first), y.row_stride, sums_, b.count, call_.values,
                          [&](long at) { return softmax.factor(at); });
            for (long at = 0; at < b.count; at += kLanes<T>)
                masked_store(log_sums + call_.row(b) + at, softmax.log_sum(at),
                             std::min<long>(kLanes<T>, b.count - at));
        }
    }

  private:
    // The keys from `key` on: their weights, and what these add to Yᵀ.
    void add_keys(const Block& b, long key, OnlineSoftmax<T>& softmax) const {
        modifiers_.gather(b, key, std::min(call_.visible_keys(b) - key, kBlockKeys<Element>));
        for (int panel = 0; panel * kNR<T> < b.count; panel++) {
            const long keys = std::min(call_.visible_keys(b, panel) - key, kBlockKeys<Element>);
            if (keys <= 0) continue;
            const long first = b.first + panel * kNR<T>;
            k_.multiply(key, keys, q_, 0, panel, weights_.data());
            mask_scores(weights_.data(), panel, keys, modifiers_.bias(), call_.causal,
                        call_.offset + first + 1 - key);
            softmax.add(weights_.data(), panel, keys, sums_, key > 0 ? call_.values : 0);
            if (modifiers_.keep() != nullptr) drop(panel, keys);
            weights_.close_for_keys(panel, keys);
            v_.add_over_keys(key, keys, weights_, panel, sums_);
        }
    }

    void drop(int panel, long keys) const {
        for (long j = 0; j < keys; j++)
            for (int i = 0; i < kNRVectors; i++) {
                const long at = j * kWide<T> + panel * kNR<T> + i * kLanes<T>;
                T* weight = weights_.data() + at;
                store(weight, load(weight) * load(modifiers_.keep() + at));
            }
    }

    const Call<T>& call_;
    const Piece& piece_;
    long keys_, pitch_;
    KeyRows<Element> k_;
    KeyColumns<Element> v_;
    QueryColumns<Element> q_;
    T* rows_;  // of queries
    Weights<Element> weights_;
    ScoreModifiers<T> modifiers_;
    T* sums_;  // Yᵀ
};

}  // namespace handgrad::attention
