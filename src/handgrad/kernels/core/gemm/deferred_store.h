// A result on its way to memory while the next one is computed.
#pragma once

#include "core/simd/simd.h"

namespace handgrad {

// The last tile of a large matrix, written by non-temporal stores. All its rows at once would make
// the core wait for memory; a row every few iterations of the next tile's micro-kernel costs
// nothing.
template <class T>
class DeferredStore {
  public:
    // Takes a row-major tile, `width` wide, and its target in a matrix with this stride. The tile
    // must stay as it is until all of it is stored.
    void defer(const T* tile, int rows, int width, T* target, long stride) {
        store_all();
        deferred_ = row_ = tile;
        end_ = tile + rows * width;
        width_ = width;
        target_ = target;
        stride_ = stride;
    }

    void store_row() {
        if (row_ == end_) return;
        for (int c = 0; c < width_; c += kLanes<T>) stream(target_ + c, load(row_ + c));
        row_ += width_;
        target_ += stride_;
    }

    void store_all() {
        while (row_ != end_) store_row();
    }

    // The same unless this tile is the one deferred: the memory of any other is used again.
    void store_others(const T* tile) {
        if (deferred_ != tile) store_all();
    }

  private:
    const T* deferred_ = nullptr;
    const T* row_ = nullptr;
    const T* end_ = nullptr;
    int width_ = 0;
    T* target_ = nullptr;
    long stride_ = 0;
};

}  // namespace handgrad
