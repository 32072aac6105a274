// The operands and products of products.h in pairs of bfloat16 (core/pair_product.h). All operands
// are filled up with zeros to whole sides: nothing that is no number comes in from beyond them.
#pragma once

#include "core/attention/products.h"
#include "core/pair_product.h"

namespace handgrad::attention {

#if defined(__AVX512F__)

static_assert(kTileColumns<float> == kPairSide, "a panel of queries is one side");

template <>
inline constexpr long kBlockKeys<Pair> = 128;
template <>
inline constexpr long kTileKeys<Pair> = kPairSide;

template <>
class QueryColumns<Pair> {
  public:
    QueryColumns(Arena& arena, long units, long terms)
        : terms_(terms), data_(arena.take<Pair>(units * size())) {}

    void pack(long unit, const float* rows, long pitch) const {
        pack_pairs(at(unit), kWide<float>, {rows, pitch, 1}, 0, kWide<float>, 0, terms_);
        std::fill(at(unit) + entries_of<Pair>(terms_) * kWide<float>, at(unit) + size(), Pair{});
    }
    Pair* at(long unit) const { return data_ + unit * size(); }

  private:
    long size() const { return whole_sides(terms_) / 2 * kWide<float>; }
    long terms_;
    Pair* data_;
};

template <>
class QueryRows<Pair> {
  public:
    QueryRows(Arena& arena, long units, long terms)
        : pitch_(whole_sides(terms)),
          numbers_(arena.take<float>(kWide<float> * pitch_)),
          data_(arena.take<Pair>(units * size())) {}

    long pitch() const { return pitch_; }
    float* open(long) const { return numbers_; }
    void close(long unit) const {
        round_in_place(numbers_, kWide<float> * pitch_);
        round_panel(at(unit), numbers_, pitch_, kWide<float>);
    }
    Pair* at(long unit) const { return data_ + unit * size(); }

  private:
    long size() const { return kWide<float> / 2 * pitch_; }
    long pitch_;
    float* numbers_;
    Pair* data_;
};

template <>
class KeyRows<Pair> {
  public:
    KeyRows(Arena& arena, long most, long terms)
        : terms_(terms),
          step_(whole_sides(most) * kAmxPairs),
          data_(arena.take<Pair>(whole_sides(terms) / kPairSide * step_)) {}

    void pack(const float* rows, long stride, long count) const {
        for (long t = 0; t < terms_; t += kPairSide)
            round_left(data_ + t / kPairSide * step_, rows + t, stride, count,
                       std::min(kPairSide, terms_ - t));
    }
    void multiply(long key, long count, const QueryColumns<Pair>& queries, long unit, int panel,
                  float* out) const {
        const long column = panel * kTileColumns<float>;
        multiply_pairs(whole_sides(count), kTileColumns<float>, whole_sides(terms_),
                       data_ + key * kAmxPairs, step_, queries.at(unit) + column, kWide<float>,
                       out + column, kWide<float>, false);
    }

  private:
    long terms_, step_;
    Pair* data_;
};

template <>
class Weights<Pair> {
  public:
    Weights(Arena& arena, long keys)
        : step_(whole_sides(keys) * kAmxPairs),
          numbers_(arena.take<float>(whole_sides(keys) * kWide<float>)),
          for_keys_(arena.take<Pair>(whole_sides(keys) / 2 * kTileColumns<float>)),
          for_queries_(arena.take<Pair>(kPanels * step_)) {}

    float* data() const { return numbers_; }
    // The right operand of a sum over keys; of one panel at a time.
    const Pair* for_keys() const { return for_keys_; }
    void close_for_keys(int panel, long keys) const {
        constexpr long lanes = kTileColumns<float>;
        round_right(for_keys_, lanes, numbers_ + panel * lanes, kWide<float>, keys);
    }
    // The left operand of a sum over queries, of which a panel is 32.
    void close_for_queries(int panel, long keys) const {
        round_left(for_queries_ + panel * step_, numbers_ + panel * kTileColumns<float>,
                   kWide<float>, keys, kPairSide);
    }
    void add_over_queries(long key, long, const QueryRows<Pair>& queries, long unit, long from,
                          long count, float* sums) const {
        const long first = from / kPairSide, pitch = queries.pitch();
        multiply_pairs(kPairSide, pitch, whole_sides(count) - first * kPairSide,
                       for_queries_ + first * step_ + key * kAmxPairs, step_,
                       queries.at(unit) + first * kAmxPairs * pitch, pitch, sums + key * pitch,
                       pitch, true);
    }

  private:
    long step_;
    float* numbers_;
    Pair *for_keys_, *for_queries_;
};

template <>
class KeyColumns<Pair> {
  public:
    KeyColumns(Arena& arena, long most, long terms)
        : terms_(terms),
          step_(rows() * kAmxPairs),
          data_(arena.take<Pair>(whole_sides(most) / kPairSide * step_)) {}

    long rows() const { return whole_sides(terms_); }
    void pack(const float* rows, long stride, long count) const {
        for (long key = 0; key < count; key += kPairSide)
            for (long f = 0; f < terms_; f += kPairSide)
                pack_square(Side::kLeft, at(key) + f * kAmxPairs, {rows, 1, stride}, f,
                            static_cast<int>(std::min(kPairSide, terms_ - f)), key,
                            std::min(kPairSide, count - key));
    }
    void add_over_keys(long key, long count, const Weights<Pair>& weights, int panel,
                       float* sums) const {
        constexpr long lanes = kTileColumns<float>;
        multiply_pairs(rows(), lanes, whole_sides(count), at(key), step_, weights.for_keys(), lanes,
                       sums + panel * lanes, kWide<float>, true);
    }

  private:
    Pair* at(long key) const { return data_ + key / kPairSide * step_; }
    long terms_, step_;
    Pair* data_;
};

#endif

}  // namespace handgrad::attention
