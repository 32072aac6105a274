// A matrix that many small products share, such as the weight of a recurrent step: packed once.
//
// Entry is what panels hold: a number or, in bf16, a pair of them (core/bf16.h).
#pragma once

#include "core/amx.h"
#include "core/memory.h"
#include "core/pair_product.h"

namespace handgrad {

// B of C = A B, (depth, columns), in panels; then C for a few rows of A at a time.
template <class Entry>
class PackedMatrix {
  public:
    using T = typename SumOf<Entry>::type;

    PackedMatrix(long depth, long columns, const StridedPack<T>& matrix)
        : depth_(depth),
          columns_(columns),
          panels_((columns + kWidth - 1) / kWidth),
          packed_(panels_ * whole() * kWidth) {
        parallel_for(panels_, 1, [&](long begin, long end) {
            const auto pack = entry_pack<Entry>(matrix, depth);
            for (long q = begin; q < end; q++) {
                Entry* panel = packed_.data() + q * whole() * kWidth;
                pack(panel, width(q), q * kWidth, lanes(q), 0, entries());
                std::fill(panel + entries() * width(q), panel + whole() * width(q), Entry{});
            }
        });
    }

    // C for `rows` <= kTileRows rows from `row` on of a matrix whose rows are in one piece; finish
    // as in `multiply`. For pairs this thread holds Registers<Pair>.
    template <class Finish>
    void multiply_rows(long row, int rows, const StridedPack<T>& matrix,
                       const Finish& finish) const {
        T* tile = scratch<T>(Scratch::kSums, kAmxSide * kWidth);
        Entry* left = scratch<Entry>(Scratch::kPanelA, kAmxSide * whole());
        pack_left(left, row, rows, matrix);
        for (long q = 0; q < panels_; q++) {
            multiply(rows, width(q), left, packed_.data() + q * whole() * kWidth, tile);
            finish(row, rows, q * kWidth, lanes(q), tile, width(q));
        }
    }

  private:
    static constexpr long kWidth = kTileColumns<T>;

    long entries() const { return entries_of<Entry>(depth_); }
    // With what AMX reads beyond them.
    long whole() const { return (entries() + kAmxPairs - 1) / kAmxPairs * kAmxPairs; }
    int lanes(long q) const { return static_cast<int>(std::min(kWidth, columns_ - q * kWidth)); }
    int width(long q) const { return lanes(q) <= kLanes<T> ? kLanes<T> : static_cast<int>(kWidth); }

    static constexpr bool kPairs = kBf16Compiled && std::is_same_v<Entry, Pair>;

    void pack_left(Entry* left, long row, int rows, const StridedPack<T>& matrix) const {
        if constexpr (kPairs)
            if (on_amx<Entry>()) {
                const T* values = matrix.data + row * matrix.lane_stride;
                for (long p = 0; p < depth_; p += kAmxTerms)
                    round_left(left + p / 2 * kAmxSide, values + p, matrix.lane_stride, rows,
                               std::min(kAmxTerms, depth_ - p));
                return;
            }
        entry_pack<Entry>(matrix, depth_)(left, rows, row, rows, 0, entries());
    }

    void multiply(int rows, int width, const Entry* left, const Entry* panel, T* tile) const {
        if constexpr (kPairs)
            if (on_amx<Entry>())
                return handgrad::multiply_rows(rows, width, entries(),
                                               {left, kAmxPairs, kAmxSide * kAmxPairs}, panel,
                                               width, tile, width, false);
        multiply_tile(rows, width, entries(), left, panel, tile, false);
    }

    long depth_, columns_, panels_;
    Temporary<Entry> packed_;
};

}  // namespace handgrad
