// What the steps write down for the gradients of the weights.
#pragma once

#include <algorithm>

#include "core/gemm/matmul.h"

namespace handgrad::recurrence {

// Rows of `slabs` times `columns` values as the micro-panels of a product over the rows: the
// gradients that the steps write need no packing when the weights' gradients are summed.
template <class T>
class RowPanels {
  public:
    RowPanels(long rows, long slabs, long columns)
        : rows_(rows),
          slabs_(slabs),
          columns_(columns),
          each_((columns + kNR<T> - 1) / kNR<T>),
          pitch_(rows * kNR<T> + kApart),
          large_(outgrows_caches<T>(rows * slabs * columns)),
          memory_(panels() * pitch_) {}

    long rows() const { return rows_; }
    long slabs() const { return slabs_; }
    long panels() const { return slabs_ * each_; }
    // The columns of a panel, counted through the slabs.
    long first(long panel) const { return panel / each_ * columns_ + within(panel); }
    int lanes(long panel) const {
        return static_cast<int>(std::min<long>(kNR<T>, columns_ - within(panel)));
    }
    int width(long panel) const { return lanes(panel) <= kLanes<T> ? kLanes<T> : kNR<T>; }
    const T* at(long panel, long row) const {
        return memory_.data() + panel * pitch_ + row * width(panel);
    }
    // The vector that begins at `column` of a slab, even where it goes beyond the last one.
    void set(long row, long slab, long column, Vec<T> values) const {
        const long panel = column / kNR<T>;
        const long left = columns_ - panel * kNR<T>;
        const long width = left <= kLanes<T> ? kLanes<T> : kNR<T>;
        put(memory_.data() + (slab * each_ + panel) * pitch_ + row * width + column % kNR<T>,
            values, kLanes<T>, large_);
    }

  private:
    // A step writes to all panels: three cache lines keep them out of each other's sets in a cache.
    static constexpr long kApart = 3 * 64 / sizeof(T);

    long within(long panel) const { return panel % each_ * kNR<T>; }

    long rows_, slabs_, columns_, each_, pitch_;
    bool large_;
    Workspace<T> memory_;
};

}  // namespace handgrad::recurrence
