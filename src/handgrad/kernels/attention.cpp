// Attention without its matrix of weights: scores are made, used and forgotten a block at a time.
//
// A block is kWide queries by some keys. It is held transposed, a row per key and a lane per query:
//     Sᵀ = K Qᵀ,  Yᵀ += Vᵀ Pᵀ          forward,
//     dPᵀ = V dYᵀ,  dV += Pᵀ dY,  dK += dSᵀ Q,  dQ += dS K          backward,
// so that maxima and sums over the keys are sums of vectors, and Pᵀ and dSᵀ are operands of the
// next product just as they stand (core/strided_tile.h). Only K, V, Q and dY are gathered
// beforehand.
//
// Going forward the largest score and the sum so far are carried from block to block, and Y is
// scaled down when a larger score comes (running softmax). Of each query log Σ exp(score) is kept;
// from it backward computes the weights again. Blocks where no query may look are left out.
//
// A piece of work is a key-value head with some of its queries. Pieces follow from the sizes alone,
// and where several share a head their dK and dV are added in order: results do not depend on the
// threads.
#include <cmath>

#include "core/binding.h"
#include "core/gil.h"
#include "core/memory.h"
#include "core/rows.h"
#include "core/strided_tile.h"
#include "core/vectormath.h"

namespace handgrad {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Queries of a block: two panels of a tile's columns, since a longer sum over them in dV and dK
// loads and stores these less often.
constexpr int kPanels = 2;
template <class T>
constexpr int kWide = kPanels * kTileColumns<T>;
// Keys of a block, whole tiles: backward holds Pᵀ and dSᵀ and takes fewer.
constexpr long kForwardKeys = 126, kBackwardKeys = 84;
// Pieces of work that are wanted where there are few heads.
constexpr long kPieces = 16;
// Up to so many queries the few-queries loop is quicker than blocks that are mostly empty.
constexpr long kFewQueries = 2;

long round_up(long n, long unit) { return (n + unit - 1) / unit * unit; }

// An array with one row of values for each of (batch, head, place).
template <class T>
struct Heads {
    T* data = nullptr;
    long batch = 0, head = 0, place = 0, step = 0;

    Heads() = default;
    template <class View>
    explicit Heads(const View& x)
        : data(x.data()),
          batch(x.stride(0)),
          head(x.stride(1)),
          place(x.stride(2)),
          step(x.shape(3) == 1 ? 1 : x.stride(3)) {}
    template <class View>
    explicit Heads(const std::optional<View>& x) {
        if (x) *this = Heads(*x);
    }
    // The rows of one head, from a place on.
    T* at(long n, long h, long t = 0) const { return data + n * batch + h * head + t * place; }
};

// The call: sizes, and which query may look at which key.
template <class T>
struct Call {
    long batch, heads, groups, queries, keys, features, values;
    T scale;
    bool causal;
    long offset;
    const std::int64_t* lengths;
    Heads<const T> bias;
    Heads<const bool> mask, keep;
    T keep_scale;

    long repeats() const { return heads / groups; }
    long blocks() const { return (queries + kWide<T> - 1) / kWide<T>; }
    // Features and values in whole vectors, as copies have them.
    long wide_features() const { return round_up(features, kLanes<T>); }
    long wide_values() const { return round_up(values, kLanes<T>); }
    bool restricted() const { return bias.data != nullptr || mask.data != nullptr; }

    // How many keys the query t and those before it may look at, mask and bias aside.
    long keys_until(long n, long t) const {
        long count = lengths == nullptr ? keys : std::clamp(long(lengths[n]), 0L, keys);
        if (causal) count = std::clamp(offset + t + 1, 0L, count);
        return count;
    }
};

// A block of queries of one head.
struct Block {
    long n, h, first;
    int count;
};

template <class T>
Block block_of(const Call<T>& call, long n, long group, long unit) {
    const long h = group * call.repeats() + unit / call.blocks();
    const long first = unit % call.blocks() * kWide<T>;
    return {n, h, first, static_cast<int>(std::min<long>(kWide<T>, call.queries - first))};
}

// Memory of this thread for one piece of work, handed out part by part, on cache lines.
template <class T>
class Arena {
  public:
    explicit Arena(std::initializer_list<long> parts) {
        long all = 0;
        for (const long part : parts) all += line(part);
        next_ = scratch<T>(Scratch::kPanelA, all);
    }
    T* take(long count) {
        T* here = next_;
        next_ += line(count);
        return here;
    }

  private:
    static long line(long count) { return round_up(count, 64 / static_cast<long>(sizeof(T))); }
    T* next_;
};

// Rows side by side, each filled up with zeros to `width`.
template <class T>
void copy_padded(T* target, const T* source, long stride, long rows, long count, long width) {
    for (long i = 0; i < rows; i++, target += width, source += stride) {
        copy_values(target, source, count);
        for (long k = count; k < width; k++) target[k] = T(0);
    }
}

// The left operand of Sᵀ or dPᵀ: tile by tile, term by term.
template <class T>
void pack_left(T* packed, const T* rows, long stride, const RowTiles& tiles, long terms) {
    for (long t = 0; t < tiles.count; t++)
        StridedPack<T>{rows, stride, 1}(packed + tiles.at(t) * terms, tiles.rows_of(t), tiles.at(t),
                                        tiles.rows_of(t), 0, terms);
}

// out (keys × kWide) = left × right for one panel of queries and its first `keys` rows.
template <class T>
void multiply_panel(const RowTiles& tiles, long keys, int panel, long terms, const T* left,
                    const T* right, T* out) {
    const long at = panel * kTileColumns<T>;
    for (long t = 0; t < tiles.count && tiles.at(t) < keys; t++)
        strided_tile<T, 1>(tiles.rows_of(t), kTileVectors, terms, left + tiles.at(t) * terms,
                           tiles.rows_of(t), right + at, kWide<T>,
                           out + tiles.at(t) * kWide<T> + at, kWide<T>, false);
}

// (keys × kWide) from a row of keys per query: value(row, k) for each key; zeros beyond the
// queries.
template <class T, class Row>
void gather_block(T* block, T* rows, const Block& b, long first_key, long keys, const Row& row) {
    const long pitch = round_up(keys, kLanes<T>);
    for (int q = 0; q < b.count; q++) row(rows + q * pitch, b.first + q, first_key, keys);
    StridedPack<T>{rows, pitch, 1}(block, kWide<T>, 0, b.count, 0, keys);
}

// What is added to the scores: the bias, and −∞ where the mask forbids to look.
template <class T>
void gather_bias(const Call<T>& call, const Block& b, T* block, T* rows, long first_key,
                 long keys) {
    gather_block(block, rows, b, first_key, keys, [&](T* out, long t, long first, long count) {
        if (call.bias.data == nullptr) {
            std::fill_n(out, count, T(0));
        } else {
            const T* bias = call.bias.at(b.n, b.h, t) + first * call.bias.step;
            for (long k = 0; k < count; k++) out[k] = bias[k * call.bias.step];
        }
        if (call.mask.data == nullptr) return;
        const bool* mask = call.mask.at(b.n, b.h, t) + first * call.mask.step;
        for (long k = 0; k < count; k++) out[k] = mask[k * call.mask.step] ? out[k] : -kInfinity<T>;
    });
}

// What the weights are multiplied with: 0 where they are dropped.
template <class T>
void gather_keep(const Call<T>& call, const Block& b, T* block, T* rows, long first_key,
                 long keys) {
    gather_block(block, rows, b, first_key, keys, [&](T* out, long t, long first, long count) {
        const bool* keep = call.keep.at(b.n, b.h, t) + first;
        for (long k = 0; k < count; k++) out[k] = keep[k] ? call.keep_scale : T(0);
    });
}

// The numbers of the lanes: 0, 1, 2, ...
template <class T>
Vec<T> lane_numbers() {
    Vec<T> numbers{};
    for (int i = 0; i < kLanes<T>; i++) numbers[i] = T(i);
    return numbers;
}

// Adds the bias and puts −∞ where a query may not look. `seen` is how many of these keys the first
// query of the panel may look at in causal order; each next query sees one more.
template <class T>
void restrict_scores(T* scores, int panel, long keys, const T* bias, bool causal, long seen) {
    constexpr int n = kLanes<T>;
    const Vec<T> forbidden = splat(-kInfinity<T>);
    const long at = panel * kTileColumns<T>;
    if (bias != nullptr)
        for (long k = 0; k < keys; k++)
            for (int v = 0; v < kTileVectors; v++) {
                T* score = scores + k * kWide<T> + at + v * n;
                const Vec<T> more = load(bias + k * kWide<T> + at + v * n);
                store(score, more == -kInfinity<T> ? forbidden : Vec<T>(load(score) + more));
            }
    if (!causal) return;
    const Vec<T> lanes = lane_numbers<T>();
    for (long k = std::max(seen, 0L); k < keys; k++)
        for (int v = 0; v < kTileVectors; v++) {
            T* score = scores + k * kWide<T> + at + v * n;
            const T needed = static_cast<T>(k + 1 - seen - v * n);
            store(score, lanes < needed ? forbidden : load(score));
        }
}

// y and log Σ exp(score) for some blocks of queries of one key-value head.
template <class T>
void forward_piece(const Call<T>& call, const Heads<const T>& q, const Heads<const T>& k,
                   const Heads<const T>& v, const Heads<T>& y, T* log_sums, long n, long group,
                   long first_unit, long last_unit) {
    constexpr int lanes = kLanes<T>;
    constexpr long wide = kWide<T>;
    const long features = call.features, values = call.values, row = call.wide_values();
    long all_keys = 0;
    for (long unit = first_unit; unit < last_unit; unit++) {
        const Block b = block_of(call, n, group, unit);
        all_keys = std::max(all_keys, call.keys_until(n, b.first + b.count - 1));
    }
    const long block_keys = std::min(all_keys, kForwardKeys);
    const long block = block_keys * wide;
    const long bias_size = call.restricted() ? block : 0;
    const long keep_size = call.keep.data != nullptr ? block : 0;
    const long rows_size = bias_size + keep_size > 0 ? wide * round_up(block_keys, kLanes<T>) : 0;
    Arena<T> arena{all_keys * features, all_keys * row, features * wide, row * wide, block,
                   bias_size,           keep_size,      rows_size};
    T* packed_k = arena.take(all_keys * features);
    T* copied_v = arena.take(all_keys * row);
    T* packed_q = arena.take(features * wide);
    T* sums = arena.take(row * wide);  // Yᵀ
    T* scores = arena.take(block);
    T* bias = arena.take(bias_size);
    T* keep = arena.take(keep_size);
    T* rows = arena.take(rows_size);

    for (long key = 0; key < all_keys; key += kForwardKeys)
        pack_left(packed_k + key * features, k.at(n, group, key), k.place,
                  RowTiles(std::min(kForwardKeys, all_keys - key)), features);
    copy_padded(copied_v, v.at(n, group), v.place, all_keys, values, row);

    for (long unit = first_unit; unit < last_unit; unit++) {
        const Block b = block_of(call, n, group, unit);
        StridedPack<T>{q.at(n, b.h), q.place, 1}(packed_q, wide, b.first, b.count, 0, features);
        for (long i = 0; i < features * wide; i += lanes)
            store(packed_q + i, load(packed_q + i) * call.scale);
        std::fill_n(sums, values * wide, T(0));
        Vec<T> best[kPanels][kTileVectors], total[kPanels][kTileVectors] = {};
        for (auto& panel : best)
            for (auto& highest : panel) highest = splat(-kInfinity<T>);

        const long unit_keys = call.keys_until(n, b.first + b.count - 1);
        for (long key = 0; key < unit_keys; key += kForwardKeys) {
            const RowTiles tiles(std::min(kForwardKeys, all_keys - key));
            const long here = std::min(kForwardKeys, unit_keys - key);
            if (call.restricted()) gather_bias(call, b, bias, rows, key, here);
            if (call.keep.data != nullptr) gather_keep(call, b, keep, rows, key, here);
            for (int panel = 0; panel * kTileColumns<T> < b.count; panel++) {
                const long at = panel * kTileColumns<T>;
                const long last = b.first + std::min<long>(at + kTileColumns<T>, b.count) - 1;
                const long panel_keys = std::min(call.keys_until(n, last) - key, here);
                if (panel_keys <= 0) continue;
                multiply_panel(tiles, panel_keys, panel, features, packed_k + key * features,
                               packed_q, scores);
                restrict_scores(scores, panel, panel_keys, call.restricted() ? bias : nullptr,
                                call.causal, call.offset + b.first + at + 1 - key);
                Vec<T> highest[kTileVectors], shift[kTileVectors], sum[kTileVectors] = {};
                for (int i = 0; i < kTileVectors; i++) highest[i] = best[panel][i];
                for (long j = 0; j < panel_keys; j++)
                    for (int i = 0; i < kTileVectors; i++)
                        highest[i] = maximum(load(scores + j * wide + at + i * lanes), highest[i]);
                for (int i = 0; i < kTileVectors; i++)
                    shift[i] = highest[i] == -kInfinity<T> ? Vec<T>{} : highest[i];
                for (long j = 0; j < panel_keys; j++)
                    for (int i = 0; i < kTileVectors; i++) {
                        T* score = scores + j * wide + at + i * lanes;
                        const Vec<T> weight = exp_weight(Vec<T>(load(score) - shift[i]));
                        sum[i] += weight;
                        store(score, weight);
                    }
                for (int i = 0; i < kTileVectors; i++) {
                    const Vec<T> smaller = exp_weight(Vec<T>(best[panel][i] - shift[i]));
                    best[panel][i] = highest[i];
                    total[panel][i] = total[panel][i] * smaller + sum[i];
                    if (key > 0)
                        for (long f = 0; f < values; f++) {
                            T* value = sums + f * wide + at + i * lanes;
                            store(value, load(value) * smaller);
                        }
                }
                if (call.keep.data != nullptr)
                    for (long j = 0; j < panel_keys; j++)
                        for (int i = 0; i < kTileVectors; i++) {
                            const long place = j * wide + at + i * lanes;
                            store(scores + place, load(scores + place) * load(keep + place));
                        }
                add_product<T, 1>(values, kTileColumns<T>, panel_keys, copied_v + key * row, row,
                                  scores + at, wide, sums + at, wide);
            }
        }

        T* log_sum = log_sums + (n * call.heads + b.h) * call.queries + b.first;
        T* target = y.at(n, b.h, b.first);
        for (long at = 0; at < b.count; at += lanes) {
            const long panel = at / kTileColumns<T>, i = at % kTileColumns<T> / lanes;
            const int have = static_cast<int>(std::min<long>(lanes, b.count - at));
            const Vec<T> all = total[panel][i];
            const Vec<T> kept = best[panel][i] + log(all);
            store_some(log_sum + at, all == T(0) ? splat(kInfinity<T>) : kept, have);
            const Vec<T> factor = all == T(0) ? Vec<T>{} : Vec<T>(T(1) / all);
            for (long f = 0; f < values; f += lanes) {
                Vec<T> square[lanes];
                const long fits = std::min<long>(lanes, values - f);
                for (int j = 0; j < lanes; j++)
                    square[j] =
                        j < fits ? Vec<T>(load(sums + (f + j) * wide + at) * factor) : Vec<T>{};
                transpose<T>(square);
                for (int j = 0; j < have; j++) {
                    T* place = target + (at + j) * y.place + f;
                    if (fits == lanes)
                        store(place, square[j]);
                    else
                        store_some(place, square[j], fits);
                }
            }
        }
    }
}

// The same for one query: a row of scores, a sum of rows. Keys and values are read once, in place.
template <class T>
void forward_query(const Call<T>& call, const T* q, const T* k, long k_stride, const T* v,
                   long v_stride, T* y, T* log_sum, long n, long h, long t) {
    const long keys = call.keys_until(n, t);
    T* scores = scratch<T>(Scratch::kRow, keys);
    const auto forbidden = [&](long j) {
        return call.mask.data != nullptr && !call.mask.at(n, h, t)[j * call.mask.step];
    };
    for (long j = 0; j < keys; j++) {
        const T* row = k + j * k_stride;
        Vec<T> dot{};
        for_lanes<T>(0, call.features, [&](auto lanes) { dot += lanes.load(q) * lanes.load(row); });
        scores[j] = call.scale * lane_sum(dot);
        if (call.bias.data != nullptr) scores[j] += call.bias.at(n, h, t)[j * call.bias.step];
        if (forbidden(j)) scores[j] = -kInfinity<T>;
    }
    const T best = largest(scores, keys);
    const T shift = best == -kInfinity<T> ? T(0) : best;
    const T all = sum<T>(0, keys, [&](auto lanes) {
        const Vec<T> weight = exp_weight(Vec<T>(lanes.load(scores) - shift));
        lanes.store(scores, weight);
        return weight;
    });
    *log_sum = all == T(0) ? kInfinity<T> : best + std::log(all);
    const T factor = all == T(0) ? T(0) : T(1) / all;
    if (call.keep.data != nullptr) {
        const bool* keep = call.keep.at(n, h, t);
        for (long j = 0; j < keys; j++) scores[j] = keep[j] ? scores[j] * call.keep_scale : T(0);
    }
    for_lanes<T>(0, call.values, [&](auto lanes) {
        Vec<T> sum{};
        for (long j = 0; j < keys; j++) sum += scores[j] * lanes.load(v + j * v_stride);
        lanes.store(y, sum * factor);
    });
}

// Where backward writes; null for a gradient that is not wanted.
template <class T>
struct Gradients {
    Heads<T> q, k, v, scores;
    bool through_scores() const {
        return q.data != nullptr || k.data != nullptr || scores.data != nullptr;
    }
};

// Rows of a sum to where they go.
template <class T>
void write_rows(T* target, long stride, const T* sums, long pitch, long rows, long count) {
    for (long i = 0; i < rows; i++) copy_values(target + i * stride, sums + i * pitch, count);
}

// The share of some blocks of queries of one key-value head in its dK and dV, and their dQ. dK and
// dV are written to dk and dv for all keys, rows dk_stride and dv_stride apart.
template <class T>
void backward_piece(const Call<T>& call, const Heads<const T>& q, const Heads<const T>& k,
                    const Heads<const T>& v, const Heads<const T>& y, const Heads<const T>& dy,
                    const T* log_sums, const Gradients<T>& to, T* dk, long dk_stride, T* dv,
                    long dv_stride, long n, long group, long first_unit, long last_unit) {
    constexpr int lanes = kLanes<T>;
    constexpr long wide = kWide<T>;
    const long features = call.features, values = call.values;
    const long q_row = call.wide_features(), v_row = call.wide_values();
    const long units = last_unit - first_unit;
    long all_keys = 0;
    for (long unit = first_unit; unit < last_unit; unit++) {
        const Block b = block_of(call, n, group, unit);
        all_keys = std::max(all_keys, call.keys_until(n, b.first + b.count - 1));
    }
    const long block_keys = std::min(all_keys, kBackwardKeys);
    const long block = block_keys * wide;
    const long bias_size = call.restricted() ? block : 0;
    const long keep_size = call.keep.data != nullptr ? block : 0;
    const long rows_size = bias_size + keep_size > 0 ? wide * round_up(block_keys, kLanes<T>) : 0;
    const long q_size = wide * q_row, v_size = wide * v_row;
    Arena<T> arena{units * wide * features,
                   units * wide * values,
                   units * q_size,
                   units * q_size,
                   units * v_size,
                   units * wide,
                   units * wide,
                   block_keys * features,
                   block_keys * values,
                   block_keys * q_row,
                   block_keys * q_row,
                   block_keys * v_row,
                   block,
                   block,
                   bias_size,
                   keep_size,
                   rows_size};
    T* packed_q = arena.take(units * wide * features);
    T* packed_dy = arena.take(units * wide * values);
    T* copied_q = arena.take(units * q_size);
    T* sums_q = arena.take(units * q_size);
    T* copied_dy = arena.take(units * v_size);
    T* log_sum = arena.take(units * wide);
    T* expected = arena.take(units * wide);  // Σ a da = Σ y dy
    T* packed_k = arena.take(block_keys * features);
    T* packed_v = arena.take(block_keys * values);
    T* copied_k = arena.take(block_keys * q_row);
    T* sums_k = arena.take(block_keys * q_row);
    T* sums_v = arena.take(block_keys * v_row);
    T* weights = arena.take(block);
    T* dscores = arena.take(block);
    T* bias = arena.take(bias_size);
    T* keep = arena.take(keep_size);
    T* rows = arena.take(rows_size);

    for (long u = 0; u < units; u++) {
        const Block b = block_of(call, n, group, first_unit + u);
        T* own_q = packed_q + u * wide * features;
        StridedPack<T>{q.at(n, b.h), q.place, 1}(own_q, wide, b.first, b.count, 0, features);
        for (long i = 0; i < features * wide; i += lanes)
            store(own_q + i, load(own_q + i) * call.scale);
        StridedPack<T>{dy.at(n, b.h), dy.place, 1}(packed_dy + u * wide * values, wide, b.first,
                                                   b.count, 0, values);
        copy_padded(copied_q + u * q_size, q.at(n, b.h, b.first), q.place, b.count, features,
                    q_row);
        copy_padded(copied_dy + u * v_size, dy.at(n, b.h, b.first), dy.place, b.count, values,
                    v_row);
        for (long i = 0; i < wide; i++) {
            T& lse = log_sum[u * wide + i];
            T& sum_here = expected[u * wide + i];
            lse = kInfinity<T>;
            sum_here = T(0);
            if (i >= b.count) continue;
            lse = log_sums[(n * call.heads + b.h) * call.queries + b.first + i];
            const T* y_row = y.at(n, b.h, b.first + i);
            const T* dy_row = dy.at(n, b.h, b.first + i);
            Vec<T> dot{};
            for_lanes<T>(0, values,
                         [&](auto part) { dot += part.load(y_row) * part.load(dy_row); });
            sum_here = lane_sum(dot);
        }
    }
    std::fill_n(sums_q, units * q_size, T(0));

    for (long key = 0; key < all_keys; key += kBackwardKeys) {
        const RowTiles tiles(std::min(kBackwardKeys, all_keys - key));
        pack_left(packed_k, k.at(n, group, key), k.place, tiles, features);
        pack_left(packed_v, v.at(n, group, key), v.place, tiles, values);
        copy_padded(copied_k, k.at(n, group, key), k.place, tiles.rows, features, q_row);
        std::fill_n(sums_k, tiles.rows * q_row, T(0));
        std::fill_n(sums_v, tiles.rows * v_row, T(0));
        for (long u = 0; u < units; u++) {
            const Block b = block_of(call, n, group, first_unit + u);
            const long here = std::min(call.keys_until(n, b.first + b.count - 1) - key, tiles.rows);
            if (here <= 0) continue;
            if (call.restricted()) gather_bias(call, b, bias, rows, key, here);
            if (call.keep.data != nullptr) gather_keep(call, b, keep, rows, key, here);
            for (int panel = 0; panel * kTileColumns<T> < b.count; panel++) {
                const long at = panel * kTileColumns<T>;
                const long last = b.first + std::min<long>(at + kTileColumns<T>, b.count) - 1;
                const long panel_keys = std::min(call.keys_until(n, last) - key, here);
                if (panel_keys <= 0) continue;
                multiply_panel(tiles, panel_keys, panel, features, packed_k,
                               packed_q + u * wide * features, weights);
                restrict_scores(weights, panel, panel_keys, call.restricted() ? bias : nullptr,
                                call.causal, call.offset + b.first + at + 1 - key);
                if (to.through_scores())
                    multiply_panel(tiles, panel_keys, panel, values, packed_v,
                                   packed_dy + u * wide * values, dscores);
                for (int i = 0; i < kTileVectors; i++) {
                    const long lane = at + i * lanes;
                    const Vec<T> lse = load(log_sum + u * wide + lane);
                    const Vec<T> mean = load(expected + u * wide + lane);
                    for (long j = 0; j < panel_keys; j++) {
                        T* score = weights + j * wide + lane;
                        T* dscore = dscores + j * wide + lane;
                        const Vec<T> weight = exp_weight(Vec<T>(load(score) - lse));
                        if (call.keep.data == nullptr) {
                            store(score, weight);
                            store(dscore, weight * (load(dscore) - mean));
                        } else {
                            const Vec<T> factor = load(keep + j * wide + lane);
                            store(score, weight * factor);
                            store(dscore, weight * (load(dscore) * factor - mean));
                        }
                    }
                }
                // dV and dK take whole tiles of keys, of which the panel may see the first ones.
                for (long j = panel_keys; j < tiles.end_of(panel_keys); j++)
                    for (int i = 0; i < kTileVectors; i++) {
                        store(weights + j * wide + at + i * lanes, Vec<T>{});
                        store(dscores + j * wide + at + i * lanes, Vec<T>{});
                    }
                if (to.scores.data != nullptr)
                    for (long i = at; i < std::min<long>(at + kTileColumns<T>, b.count); i++) {
                        T* target = to.scores.at(n, b.h, b.first + i) + key;
                        const long seen = std::min(call.keys_until(n, b.first + i) - key, here);
                        for (long j = 0; j < seen; j++) target[j] = dscores[j * wide + i];
                    }
                if (to.q.data != nullptr)
                    add_product<T, 1>(std::min<long>(kTileColumns<T>, b.count - at), q_row,
                                      panel_keys, dscores + at, wide, copied_k, q_row,
                                      sums_q + u * q_size + at * q_row, q_row);
            }
            // In causal order a tile of keys is seen from some query of the block on.
            for (long t = 0; t < tiles.count && tiles.at(t) < here; t++) {
                const long first_key = tiles.at(t);
                const int height =
                    static_cast<int>(std::min<long>(tiles.rows_of(t), here - first_key));
                const long blind = key + first_key - call.offset - b.first;
                const long from = call.causal ? std::clamp(blind, 0L, long(b.count)) : 0;
                const auto add = [&](const T* left, const T* right, long pitch, T* sums) {
                    for (long column = 0; column < pitch; column += kTileColumns<T>)
                        strided_tile<T, wide>(height, pitch - column > lanes ? 2 : 1,
                                              b.count - from, left + first_key * wide + from, 1,
                                              right + from * pitch + column, pitch,
                                              sums + first_key * pitch + column, pitch, true);
                };
                if (dv != nullptr) add(weights, copied_dy + u * v_size, v_row, sums_v);
                if (dk != nullptr) add(dscores, copied_q + u * q_size, q_row, sums_k);
            }
        }
        if (dv != nullptr)
            write_rows(dv + key * dv_stride, dv_stride, sums_v, v_row, tiles.rows, values);
        if (dk != nullptr) {
            for (long i = 0; i < tiles.rows * q_row; i += lanes)
                store(sums_k + i, load(sums_k + i) * call.scale);
            write_rows(dk + key * dk_stride, dk_stride, sums_k, q_row, tiles.rows, features);
        }
    }
    for (long key = all_keys; key < call.keys; key++) {
        if (dk != nullptr) std::fill_n(dk + key * dk_stride, features, T(0));
        if (dv != nullptr) std::fill_n(dv + key * dv_stride, values, T(0));
    }
    if (to.q.data == nullptr) return;
    for (long i = 0; i < units * q_size; i += lanes)
        store(sums_q + i, load(sums_q + i) * call.scale);
    for (long u = 0; u < units; u++) {
        const Block b = block_of(call, n, group, first_unit + u);
        write_rows(to.q.at(n, b.h, b.first), to.q.place, sums_q + u * q_size, q_row, b.count,
                   features);
    }
}

// body(batch row, group, first unit, last unit, piece within the head) for all pieces, in parallel.
struct Pieces {
    long heads, units, per_head;

    Pieces(long all_heads, long all_units)
        : heads(all_heads),
          units(all_units),
          per_head(
              std::clamp((kPieces + heads - 1) / std::max(heads, 1L), 1L, std::max(units, 1L))) {}

    template <class Body>
    void run(long groups, const Body& body) const {
        parallel_for(heads * per_head, 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long head = i / per_head, piece = i % per_head;
                body(head / groups, head % groups, piece * units / per_head,
                     (piece + 1) * units / per_head, piece);
            }
        });
    }
};

template <class T>
Call<T> call_of(const StridedIn<T>& q, const StridedIn<T>& k, const StridedIn<T>& v,
                const std::optional<StridedIn<T>>& bias, const std::optional<StridedIn<bool>>& mask,
                const std::optional<Indices>& lengths, const std::optional<StridedIn<bool>>& keep,
                double keep_scale, double scale, bool causal, long offset) {
    const bool empty = q.shape(0) * q.shape(1) * q.shape(2) == 0;
    for (const StridedIn<T>* x : {&q, &k, &v})
        if (x->ndim() != 4 || (!empty && x->shape(3) > 1 && x->stride(3) != 1))
            throw std::invalid_argument("attention: the last axis does not lie in one piece");
    return {q.shape(0),
            q.shape(1),
            k.shape(1),
            q.shape(2),
            k.shape(2),
            q.shape(3),
            v.shape(3),
            T(scale),
            causal,
            offset,
            lengths ? lengths->data() : nullptr,
            Heads<const T>(bias),
            Heads<const bool>(mask),
            Heads<const bool>(keep),
            T(keep_scale)};
}

template <class T>
void attention_forward(StridedIn<T> q, StridedIn<T> k, StridedIn<T> v,
                       std::optional<StridedIn<T>> bias, std::optional<StridedIn<bool>> mask,
                       std::optional<Indices> lengths, std::optional<StridedIn<bool>> keep,
                       double keep_scale, double scale, bool causal, long offset, StridedOut<T> y,
                       Out<T> log_sums) {
    const Call<T> call =
        call_of(q, k, v, bias, mask, lengths, keep, keep_scale, scale, causal, offset);
    if (lengths)
        for (long n = 0; n < call.batch; n++)
            if (call.lengths[n] < 0 || call.lengths[n] > call.keys)
                throw nb::index_error("a length beyond the keys");
    if (log_sums.size() == 0) return;
    const Heads<const T> q_rows(q), k_rows(k), v_rows(v);
    const Heads<T> y_rows(y);
    const WithoutGil unlocked(log_sums.size() * call.keys);
    if (call.queries <= kFewQueries) {
        const long rows = call.batch * call.heads * call.queries;
        parallel_for(rows, rows_per_chunk(call.keys * call.features), [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long t = i % call.queries, h = i / call.queries % call.heads;
                const long n = i / call.queries / call.heads, group = h / call.repeats();
                forward_query(call, q_rows.at(n, h, t), k_rows.at(n, group), k_rows.place,
                              v_rows.at(n, group), v_rows.place, y_rows.at(n, h, t),
                              log_sums.data() + i, n, h, t);
            }
        });
        return;
    }
    const Pieces pieces(call.batch * call.groups, call.repeats() * call.blocks());
    pieces.run(call.groups, [&](long n, long group, long first, long last, long) {
        forward_piece(call, q_rows, k_rows, v_rows, y_rows, log_sums.data(), n, group, first, last);
    });
}

template <class T>
void attention_backward(StridedIn<T> dy, StridedIn<T> q, StridedIn<T> k, StridedIn<T> v,
                        std::optional<StridedIn<T>> bias, std::optional<StridedIn<bool>> mask,
                        std::optional<Indices> lengths, std::optional<StridedIn<bool>> keep,
                        double keep_scale, double scale, bool causal, long offset, StridedIn<T> y,
                        In<T> log_sums, std::optional<StridedOut<T>> dq,
                        std::optional<StridedOut<T>> dk, std::optional<StridedOut<T>> dv,
                        std::optional<StridedOut<T>> dscores) {
    const Call<T> call =
        call_of(q, k, v, bias, mask, lengths, keep, keep_scale, scale, causal, offset);
    const Heads<const T> q_rows(q), k_rows(k), v_rows(v), y_rows(y), dy_rows(dy);
    const Gradients<T> to{Heads<T>(dq), Heads<T>(dk), Heads<T>(dv), Heads<T>(dscores)};
    const WithoutGil unlocked(log_sums.size() * call.keys);
    const long heads = call.batch * call.groups;
    const Pieces pieces(heads, call.repeats() * call.blocks());
    const long k_size = dk ? call.keys * call.features : 0;
    const long v_size = dv ? call.keys * call.values : 0;
    const long parts = pieces.per_head;
    const Temporary<T> shares(parts > 1 ? heads * parts * (k_size + v_size) : 0);
    pieces.run(call.groups, [&](long n, long group, long first, long last, long piece) {
        T* dk_here = dk ? to.k.at(n, group) : nullptr;
        T* dv_here = dv ? to.v.at(n, group) : nullptr;
        long dk_stride = to.k.place, dv_stride = to.v.place;
        if (parts > 1) {
            T* share =
                shares.data() + ((n * call.groups + group) * parts + piece) * (k_size + v_size);
            if (dk) dk_here = share;
            if (dv) dv_here = share + k_size;
            dk_stride = call.features;
            dv_stride = call.values;
        }
        backward_piece(call, q_rows, k_rows, v_rows, y_rows, dy_rows, log_sums.data(), to, dk_here,
                       dk_stride, dv_here, dv_stride, n, group, first, last);
    });
    if (parts == 1) return;
    const long rows = heads * call.keys;
    parallel_for(
        rows, rows_per_chunk(parts * (call.features + call.values)), [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long head = i / call.keys, key = i % call.keys;
                const long n = head / call.groups, group = head % call.groups;
                const T* share = shares.data() + head * parts * (k_size + v_size);
                const auto add = [&](T* target, const T* first, long width) {
                    for_lanes<T>(0, width, [=](auto lanes) {
                        Vec<T> sum{};
                        for (long p = 0; p < parts; p++)
                            sum += lanes.load(first + p * (k_size + v_size));
                        lanes.store(target, sum);
                    });
                };
                if (dk) add(to.k.at(n, group, key), share + key * call.features, call.features);
                if (dv)
                    add(to.v.at(n, group, key), share + k_size + key * call.values, call.values);
            }
        });
}

template <class T>
void bind(nb::module_& m) {
    const nb::arg given;
    const auto maybe = nb::arg().none();
    m.def("attention_forward", &attention_forward<T>, given, given, given, maybe, maybe, maybe,
          maybe, given, given, given, given, given, given);
    m.def("attention_backward", &attention_backward<T>, given, given, given, given, maybe, maybe,
          maybe, maybe, given, given, given, given, given, given, maybe, maybe, maybe, maybe);
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
