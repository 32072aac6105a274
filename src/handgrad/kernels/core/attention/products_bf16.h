// The operands and products of products.h in Bf16x2 (core/gemm/bf16x2_product.h). All operands are
// padded with zeros to whole sides, so that no NaN enters from beyond them.
#pragma once

#include "core/attention/products.h"
#include "core/gemm/bf16x2_product.h"

namespace handgrad::attention {

#if defined(__AVX512F__)

static_assert(kNR<float> == kBf16Side, "a panel of queries is one side");

template <>
inline constexpr long kBlockKeys<Bf16x2> = 128;
template <>
inline constexpr long kTileKeys<Bf16x2> = kBf16Side;

template <>
class QueryColumns<Bf16x2> {
  public:
    QueryColumns(Arena& arena, long units, long width)
        : width_(width), data_(arena.take<Bf16x2>(units * size())) {}

    void pack(long unit, const float* rows, long pitch) const {
        pack_bf16x2(at(unit), kWide<float>, {rows, pitch, 1}, 0, kWide<float>, 0, width_);
        std::fill(at(unit) + elements_of<Bf16x2>(width_) * kWide<float>, at(unit) + size(),
                  Bf16x2{});
    }
    Bf16x2* at(long unit) const { return data_ + unit * size(); }

  private:
    long size() const { return whole_sides(width_) / 2 * kWide<float>; }
    long width_;
    Bf16x2* data_;
};

template <>
class QueryRows<Bf16x2> {
  public:
    QueryRows(Arena& arena, long units, long width)
        : pitch_(whole_sides(width)),
          numbers_(arena.take<float>(kWide<float> * pitch_)),
          data_(arena.take<Bf16x2>(units * size())) {}

    long pitch() const { return pitch_; }
    float* open(long) const { return numbers_; }
    void close(long unit) const {
        round_in_place(numbers_, kWide<float> * pitch_);
        round_panel(at(unit), numbers_, pitch_, kWide<float>);
    }
    Bf16x2* at(long unit) const { return data_ + unit * size(); }

  private:
    long size() const { return kWide<float> / 2 * pitch_; }
    long pitch_;
    float* numbers_;
    Bf16x2* data_;
};

template <>
class KeyRows<Bf16x2> {
  public:
    KeyRows(Arena& arena, long most, long width)
        : width_(width),
          step_(whole_sides(most) * kAmxElements),
          data_(arena.take<Bf16x2>(whole_sides(width) / kBf16Side * step_)) {}

    void pack(const float* rows, long stride, long count) const {
        for (long t = 0; t < width_; t += kBf16Side)
            round_left(data_ + t / kBf16Side * step_, rows + t, stride, count,
                       std::min(kBf16Side, width_ - t));
    }
    void multiply(long key, long count, const QueryColumns<Bf16x2>& queries, long unit, int panel,
                  float* out) const {
        const long column = panel * kNR<float>;
        multiply_bf16x2(whole_sides(count), kNR<float>, whole_sides(width_),
                        data_ + key * kAmxElements, step_, queries.at(unit) + column, kWide<float>,
                        out + column, kWide<float>, false);
    }

  private:
    long width_, step_;
    Bf16x2* data_;
};

template <>
class Weights<Bf16x2> {
  public:
    Weights(Arena& arena, long keys)
        : step_(whole_sides(keys) * kAmxElements),
          numbers_(arena.take<float>(whole_sides(keys) * kWide<float>)),
          for_keys_(arena.take<Bf16x2>(whole_sides(keys) / 2 * kNR<float>)),
          for_queries_(arena.take<Bf16x2>(kPanels * step_)) {}

    float* data() const { return numbers_; }
    // The right operand of a sum over keys; of one panel at a time.
    const Bf16x2* for_keys() const { return for_keys_; }
    void close_for_keys(int panel, long keys) const {
        constexpr long lanes = kNR<float>;
        round_right(for_keys_, lanes, numbers_ + panel * lanes, kWide<float>, keys);
    }
    // The left operand of a sum over queries, of which a panel is 32.
    void close_for_queries(int panel, long keys) const {
        round_left(for_queries_ + panel * step_, numbers_ + panel * kNR<float>, kWide<float>, keys,
                   kBf16Side);
    }
    void add_over_queries(long key, long, const QueryRows<Bf16x2>& queries, long unit, long from,
                          long count, float* sums) const {
        const long first = from / kBf16Side, pitch = queries.pitch();
        multiply_bf16x2(kBf16Side, pitch, whole_sides(count) - first * kBf16Side,
                        for_queries_ + first * step_ + key * kAmxElements, step_,
                        queries.at(unit) + first * kAmxElements * pitch, pitch, sums + key * pitch,
                        pitch, true);
    }

  private:
    long step_;
    float* numbers_;
    Bf16x2 *for_keys_, *for_queries_;
};

template <>
class KeyColumns<Bf16x2> {
  public:
    KeyColumns(Arena& arena, long most, long width)
        : width_(width),
          step_(rows() * kAmxElements),
          data_(arena.take<Bf16x2>(whole_sides(most) / kBf16Side * step_)) {}

    long rows() const { return whole_sides(width_); }
    void pack(const float* rows, long stride, long count) const {
        for (long key = 0; key < count; key += kBf16Side)
            for (long f = 0; f < width_; f += kBf16Side)
                pack_square(Side::kLeft, at(key) + f * kAmxElements, {rows, 1, stride}, f,
                            static_cast<int>(std::min(kBf16Side, width_ - f)), key,
                            std::min(kBf16Side, count - key));
    }
    void add_over_keys(long key, long count, const Weights<Bf16x2>& weights, int panel,
                       float* sums) const {
        constexpr long lanes = kNR<float>;
        multiply_bf16x2(rows(), lanes, whole_sides(count), at(key), step_, weights.for_keys(),
                        lanes, sums + panel * lanes, kWide<float>, true);
    }

  private:
    Bf16x2* at(long key) const { return data_ + key / kBf16Side * step_; }
    long width_, step_;
    Bf16x2* data_;
};

#endif

}  // namespace handgrad::attention
