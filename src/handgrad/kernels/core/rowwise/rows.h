// Loops over the rows of an array, in parallel, and sums over the rows.
#pragma once

#include <array>

#include "core/elementwise/elementwise.h"
#include "core/runtime/memory.h"

namespace handgrad {

// Rows of this width that are worth handing to another thread.
inline long rows_per_chunk(long width) { return std::max(kChunk / std::max(width, 1L), 1L); }

// One axis of an array, viewed as (outer, width, inner): a row is what lies along it.
struct Axis {
    long outer, width, inner;
    long rows() const { return outer * inner; }
};

namespace detail {

// A run of rows that stand side by side, copied one after another and back.
template <class T>
void copy_rows(const T* source, T* rows, long count, Axis axis) {
    for (long i = 0; i < axis.width; i++)
        for (long r = 0; r < count; r++) rows[r * axis.width + i] = source[i * axis.inner + r];
}

template <class T>
void copy_back(const T* rows, T* target, long count, Axis axis) {
    for (long i = 0; i < axis.width; i++)
        for (long r = 0; r < count; r++) target[i * axis.inner + r] = rows[r * axis.width + i];
}

}  // namespace detail

// body(row number, {input rows}, output row) for every row; `out` may be null. Rows that do not lie
// in one piece are copied, as many at a time as share a cache line.
template <class T, std::size_t Inputs, class Body>
void for_rows(Axis axis, std::array<const T*, Inputs> in, T* out, const Body& body) {
    const long width = axis.width;
    if (axis.outer == 0 || axis.inner == 0) return;
    if (axis.inner == 1) {
        parallel_for(axis.outer, rows_per_chunk(width), [&](long begin, long end) {
            for (long row = begin; row < end; row++) {
                std::array<const T*, Inputs> rows;
                for (std::size_t k = 0; k < Inputs; k++) rows[k] = in[k] + row * width;
                body(row, rows, out == nullptr ? out : out + row * width);
            }
        });
        return;
    }
    constexpr long kRun = 64 / static_cast<long>(sizeof(T));
    const long runs = (axis.inner + kRun - 1) / kRun;
    parallel_for(axis.outer * runs, rows_per_chunk(width * kRun), [&](long begin, long end) {
        const long block = kRun * width;
        T* copies = thread_workspace<T>(WorkspaceSlot::kRow, block * static_cast<long>(Inputs + 1));
        T* results = copies + block * static_cast<long>(Inputs);
        for (long run = begin; run < end; run++) {
            const long first = run % runs * kRun;
            const long count = std::min(kRun, axis.inner - first);
            const long place = run / runs * width * axis.inner + first;
            for (std::size_t k = 0; k < Inputs; k++)
                detail::copy_rows(in[k] + place, copies + static_cast<long>(k) * block, count,
                                  axis);
            for (long r = 0; r < count; r++) {
                std::array<const T*, Inputs> rows;
                for (std::size_t k = 0; k < Inputs; k++)
                    rows[k] = copies + static_cast<long>(k) * block + r * width;
                body(run / runs * axis.inner + first + r, rows, results + r * width);
            }
            if (out != nullptr) detail::copy_back(results, out + place, count, axis);
        }
    });
}

// Sums over many rows of `width` values each, such as dgamma and dbeta: neighbouring rows add into
// one part, then the parts are added in order. The rows of a part follow from the sizes alone.
template <class T>
class RowSums {
  public:
    RowSums(long rows, long row_width, long width)
        : rows_(rows),
          width_(width),
          rows_per_part_(std::max(rows_per_chunk(row_width), (rows + kMostParts - 1) / kMostParts)),
          parts_((rows + rows_per_part_ - 1) / rows_per_part_),
          sums_(parts_ * width) {}

    // body(row, sums) for every row, in order within a part.
    template <class Body>
    void run(const Body& body) const {
        parallel_for(parts_, 1, [&](long begin, long end) {
            for (long part = begin; part < end; part++) {
                T* sums = sums_.data() + part * width_;
                std::fill_n(sums, width_, T(0));
                const long last = std::min((part + 1) * rows_per_part_, rows_);
                for (long row = part * rows_per_part_; row < last; row++) body(row, sums);
            }
        });
    }

    // target = the sums [offset, offset + count).
    void write(T* target, long offset, long count) const {
        parallel_transform<T>(count, [=, this](auto lanes) {
            Vec<T> sum{};
            for (long part = 0; part < parts_; part++)
                sum += lanes.load(sums_.data() + part * width_ + offset);
            lanes.store(target, sum);
        });
    }

  private:
    static constexpr long kMostParts = 64;
    long rows_, width_, rows_per_part_, parts_;
    Workspace<T> sums_;
};

}  // namespace handgrad
