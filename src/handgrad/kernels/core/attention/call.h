// A call of attention: its inputs, the keys visible to each query, and its partition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/gemm/matmul.h"

namespace handgrad::attention {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Queries of a block: two micro-panels, since a longer sum over them in dV and dK loads and stores
// these less often.
constexpr int kPanels = 2;
template <class T>
constexpr int kWide = kPanels * kNR<T>;

inline long round_up(long n, long unit) { return (n + unit - 1) / unit * unit; }

// An array with one row of values for each of (batch, head, position).
template <class T>
struct Heads {
    T* data = nullptr;
    long batch = 0, head = 0, row_stride = 0, step = 0;

    Heads() = default;
    template <class View>
    explicit Heads(const View& x)
        : data(x.data()),
          batch(x.stride(0)),
          head(x.stride(1)),
          row_stride(x.stride(2)),
          step(x.shape(3) == 1 ? 1 : x.stride(3)) {}
    template <class View>
    explicit Heads(const std::optional<View>& x) {
        if (x) *this = Heads(*x);
    }
    // The rows of one head, from position t on.
    T* at(long n, long h, long t = 0) const { return data + n * batch + h * head + t * row_stride; }
};

// A block of queries of one head.
struct Block {
    long n, h, first;
    int count;
};

// A key-value head with some of its blocks of queries.
struct Piece {
    long n, group, first_unit, last_unit;
    long units() const { return last_unit - first_unit; }
};

template <class T>
struct Call {
    long batch, heads, groups, queries, keys, features, values;
    T scale;
    bool causal;
    long offset;
    const std::int64_t* lengths;
    Heads<const T> q, k, v, bias;
    Heads<const bool> mask, keep;
    T keep_scale;

    long repeats() const { return heads / groups; }
    long blocks() const { return (queries + kWide<T> - 1) / kWide<T>; }
    bool has_bias_or_mask() const { return bias.data != nullptr || mask.data != nullptr; }
    bool drops() const { return keep.data != nullptr; }
    long row(const Block& b) const { return (b.n * heads + b.h) * queries + b.first; }

    Block block(const Piece& piece, long unit) const {
        const long h = piece.group * repeats() + unit / blocks();
        const long first = unit % blocks() * kWide<T>;
        return {piece.n, h, first, static_cast<int>(std::min<long>(kWide<T>, queries - first))};
    }

    // The number of keys visible to query t and those before it, mask and bias aside.
    long visible_keys(long n, long t) const {
        long count = lengths == nullptr ? keys : long(lengths[n]);
        if (causal) count = std::clamp(offset + t + 1, 0L, count);
        return count;
    }
    // The same for all queries of a block, of one of its panels, and of a piece.
    long visible_keys(const Block& b) const { return visible_keys(b.n, b.first + b.count - 1); }
    long visible_keys(const Block& b, int panel) const {
        const long end = std::min<long>((panel + 1) * kNR<T>, b.count);
        return visible_keys(b.n, b.first + end - 1);
    }
    long visible_keys(const Piece& piece) const {
        long most = 0;
        for (long unit = piece.first_unit; unit < piece.last_unit; unit++)
            most = std::max(most, visible_keys(block(piece, unit)));
        return most;
    }
};

// The pieces of a call: they follow from its sizes alone.
struct Pieces {
    long groups, heads, units, per_head;

    template <class T>
    explicit Pieces(const Call<T>& call)
        : groups(call.groups),
          heads(call.batch * call.groups),
          units(call.repeats() * call.blocks()),
          per_head(
              std::clamp((kWanted + heads - 1) / std::max(heads, 1L), 1L, std::max(units, 1L))) {}

    // body(piece, its number) for all pieces, in parallel; those of a head follow each other.
    template <class Body>
    void run(const Body& body) const {
        parallel_for(heads * per_head, 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long head = i / per_head, part = i % per_head;
                body(Piece{head / groups, head % groups, part * units / per_head,
                           (part + 1) * units / per_head},
                     i);
            }
        });
    }

  private:
    // The number of pieces at which a call with few heads aims.
    static constexpr long kWanted = 16;
};

}  // namespace handgrad::attention
