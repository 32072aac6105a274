// The operands of attention's products, and the products, for numbers; products_bf16.h has them for
// Bf16x2.
//
//     Sᵀ = K Qᵀ, dPᵀ = V dYᵀ       KeyRows × QueryColumns
//     Yᵀ += Vᵀ Pᵀ, dQᵀ += Kᵀ dSᵀ   KeyColumns × Weights
//     dV += Pᵀ dY, dK += dSᵀ Q     Weights × QueryRows
//
// `width` is how many values a row has; each class pads what it holds to the shape of its products.
#pragma once

#include "core/attention/arena.h"
#include "core/attention/call.h"
#include "core/gemm/amx.h"
#include "core/gemm/strided_micro_kernel.h"

namespace handgrad::attention {

// Keys of a block, whole tiles.
template <class Element>
constexpr long kBlockKeys = 126;
// Keys of one micro-kernel.
template <class Element>
constexpr long kTileKeys = kMR;

// For each of some blocks of queries its rows, transposed.
template <class T>
class QueryColumns {
  public:
    QueryColumns(Arena& arena, long units, long width)
        : width_(width), data_(arena.take<T>(units * width * kWide<T>)) {}

    // From kWide rows.
    void pack(long unit, const T* rows, long pitch) const {
        StridedPack<T>{rows, pitch, 1}(at(unit), kWide<T>, 0, kWide<T>, 0, width_);
    }
    T* at(long unit) const { return data_ + unit * width_ * kWide<T>; }

  private:
    long width_;
    T* data_;
};

// For each of some blocks of queries its rows.
template <class T>
class QueryRows {
  public:
    QueryRows(Arena& arena, long units, long width)
        : pitch_(round_up(width, kLanes<T>)), data_(arena.take<T>(units * kWide<T> * pitch_)) {}

    long pitch() const { return pitch_; }
    // The memory for the rows of a block, `pitch` apart, until close(): it then has them as
    // products read them.
    T* open(long unit) const { return at(unit); }
    void close(long) const {}
    T* at(long unit) const { return data_ + unit * kWide<T> * pitch_; }

  private:
    long pitch_;
    T* data_;
};

// Rows of keys as left operands of scores.
template <class T>
class KeyRows {
  public:
    KeyRows(Arena& arena, long most, long width)
        : width_(width), data_(arena.take<T>(most * width)) {}

    void pack(const T* rows, long stride, long count) {
        count_ = count;
        for (long at = 0; at < count; at += kMR)
            StridedPack<T>{rows, stride, 1}(data_ + at * width_, height(at), at, height(at), 0,
                                            width_);
    }
    // out = the rows from `key` on, at least `count` of them, × one panel of a block of queries.
    void multiply(long key, long count, const QueryColumns<T>& queries, long unit, int panel,
                  T* out) const {
        const long column = panel * kNR<T>;
        for (long at = 0; at < count; at += kMR)
            strided_micro_kernel<T, 1>(
                height(key + at), kNRVectors, width_, data_ + (key + at) * width_, height(key + at),
                queries.at(unit) + column, kWide<T>, out + at * kWide<T> + column, kWide<T>, false);
    }

  private:
    int height(long at) const { return static_cast<int>(std::min<long>(kMR, count_ - at)); }
    long width_, count_ = 0;
    T* data_;
};

// Scores, weights or their gradients: a block.
template <class T>
class Weights {
  public:
    Weights(Arena& arena, long keys) : data_(arena.take<T>(round_up(keys, kMR) * kWide<T>)) {}

    T* data() const { return data_; }
    // A panel of queries has its first `keys` rows, as operand of a sum over keys or over queries.
    void close_for_keys(int, long) const {}
    // Sums over queries take whole tiles of keys.
    void close_for_queries(int panel, long keys) const {
        for (long j = keys; j < round_up(keys, kMR); j++)
            std::fill_n(data_ + j * kWide<T> + panel * kNR<T>, kNR<T>, T(0));
    }
    // sums += a tile of keys × the queries [from, count) of a block.
    void add_over_queries(long key, long keys, const QueryRows<T>& queries, long unit, long from,
                          long count, T* sums) const {
        const long pitch = queries.pitch();
        for (long column = 0; column < pitch; column += kNR<T>)
            strided_micro_kernel<T, kWide<T>>(
                static_cast<int>(keys), pitch - column > kLanes<T> ? 2 : 1, count - from,
                data_ + key * kWide<T> + from, 1, queries.at(unit) + from * pitch + column, pitch,
                sums + key * pitch + column, pitch, true);
    }

  private:
    T* data_;
};

// Rows of keys as left operands of sums over the keys, that is, transposed.
template <class T>
class KeyColumns {
  public:
    KeyColumns(Arena& arena, long most, long width)
        : width_(width), data_(arena.take<T>(most * width)) {}

    // Rows of the sums.
    long rows() const { return width_; }
    void pack(const T* rows, long stride, long count) const {
        for (long i = 0; i < count; i++) copy_values(data_ + i * width_, rows + i * stride, width_);
    }
    // A panel of the sums, (width × kWide), += the rows from `key` on × a panel of weights.
    void add_over_keys(long key, long count, const Weights<T>& weights, int panel, T* sums) const {
        const long column = panel * kNR<T>;
        add_product<T, 1>(width_, kNR<T>, count, data_ + key * width_, width_,
                          weights.data() + column, kWide<T>, sums + column, kWide<T>);
    }

  private:
    long width_;
    T* data_;
};

}  // namespace handgrad::attention
