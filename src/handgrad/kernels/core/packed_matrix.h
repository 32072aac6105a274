// A matrix that many small products share, such as the weight of a recurrent step: packed once.
#pragma once

#include "core/matmul.h"
#include "core/memory.h"

namespace handgrad {

// B of C = A B, (depth, columns), in panels; then C for a few rows of A at a time.
template <class T>
class PackedMatrix {
  public:
    template <class PackB>
    PackedMatrix(long depth, long columns, const PackB& pack_b)
        : depth_(depth),
          columns_(columns),
          panels_((columns + kWidth - 1) / kWidth),
          packed_(panels_ * depth * kWidth) {
        parallel_for(panels_, 1, [&](long begin, long end) {
            for (long q = begin; q < end; q++)
                pack_b(packed_.data() + q * depth * kWidth, width(q), q * kWidth, lanes(q), 0,
                       depth);
        });
    }

    // C for `rows` <= kTileRows rows from `row` on; pack_a and finish as in `multiply`.
    template <class PackA, class Finish>
    void multiply_rows(long row, int rows, const PackA& pack_a, const Finish& finish) const {
        T* panel_a = scratch<T>(Scratch::kPanelA, rows * depth_);
        T* tile = scratch<T>(Scratch::kSums, rows * kWidth);
        pack_a(panel_a, rows, row, rows, 0, depth_);
        for (long q = 0; q < panels_; q++) {
            multiply_tile(rows, width(q), depth_, panel_a, packed_.data() + q * depth_ * kWidth,
                          tile, false);
            finish(row, rows, q * kWidth, lanes(q), tile, width(q));
        }
    }

  private:
    static constexpr long kWidth = kTileColumns<T>;

    int lanes(long q) const { return static_cast<int>(std::min(kWidth, columns_ - q * kWidth)); }
    int width(long q) const { return lanes(q) <= kLanes<T> ? kLanes<T> : static_cast<int>(kWidth); }

    long depth_, columns_, panels_;
    Temporary<T> packed_;
};

}  // namespace handgrad
