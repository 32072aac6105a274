// The sequences that have a step at each time, and their partition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/gemm/matmul.h"
#include "core/runtime/threads.h"

namespace handgrad::recurrence {

// One step of one sequence; `before` is the row of the step that runs before it, −1 if none does.
struct StepRow {
    long sequence;
    long position, position_before;  // in (N, T)
    long row, row_before;            // in what is kept for backward
};

// Sequences sorted by length, and those that have a step at each time.
class Sequences {
  public:
    Sequences(long batch, long steps, const std::int64_t* lengths, bool reverse)
        : batch_(batch),
          steps_(steps),
          reverse_(reverse),
          order_(static_cast<std::size_t>(batch)),
          lengths_(static_cast<std::size_t>(batch), steps),
          starts_(static_cast<std::size_t>(steps + 1), 0) {
        std::iota(order_.begin(), order_.end(), 0L);
        if (lengths != nullptr) {
            std::sort(order_.begin(), order_.end(), [&](long a, long b) {
                return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
            });
            for (std::size_t k = 0; k < order_.size(); k++) lengths_[k] = lengths[order_[k]];
        }
        long active = batch;
        for (long t = 0; t < steps; t++) {
            while (active > 0 && length(active - 1) <= t) active--;
            starts_[static_cast<std::size_t>(t + 1)] = start(t) + active;
        }
    }

    long batch() const { return batch_; }
    long steps() const { return steps_; }
    // All steps that count.
    long rows() const { return start(steps_); }
    // The number of sequences that have a step at time t: those of sorted index 0 to active(t) − 1.
    long active(long t) const { return start(t + 1) - start(t); }
    long sequence(long sorted_index) const {
        return order_[static_cast<std::size_t>(sorted_index)];
    }
    long length(long sorted_index) const {
        return lengths_[static_cast<std::size_t>(sorted_index)];
    }
    // The time of the step that runs as number s.
    long time(long s) const { return reverse_ ? steps_ - 1 - s : s; }
    // The time of a sequence's last step to run, and that before time t; −1 if there is none.
    long last(long sorted_index) const {
        return reverse_ ? std::min(length(sorted_index), 1L) - 1 : length(sorted_index) - 1;
    }
    long before(long sorted_index, long t) const {
        return reverse_ ? (t + 1 < length(sorted_index) ? t + 1 : -1) : t - 1;
    }
    long position(long sorted_index, long t) const { return sequence(sorted_index) * steps_ + t; }
    long row(long sorted_index, long t) const { return start(t) + sorted_index; }

    StepRow step(long sorted_index, long t) const {
        const long b = before(sorted_index, t);
        return {sequence(sorted_index), position(sorted_index, t),
                b < 0 ? -1 : position(sorted_index, b), row(sorted_index, t),
                b < 0 ? -1 : row(sorted_index, b)};
    }

  private:
    long start(long t) const { return starts_[static_cast<std::size_t>(t)]; }

    long batch_, steps_;
    bool reverse_;
    std::vector<long> order_, lengths_, starts_;
};

// The sequences of sorted index first, first + stride, ...: long and short ones in every partition.
struct SequencePartition {
    long first, stride;
    long count(long active) const { return std::max((active - first + stride - 1) / stride, 0L); }
    long sorted_index(long i) const { return first + i * stride; }
};

// body(partition) for all sequences; every partition has work for whole tiles if there is enough.
template <class Body>
void for_partitions(const Sequences& sequences, long values_per_row, const Body& body) {
    const long batch = sequences.batch();
    const bool small = sequences.rows() * values_per_row < 200000;
    const long threads = small ? 1 : get_threads();
    const long partitions =
        std::min(std::max(batch, 1L), batch >= 4 * threads * kMR ? 2 * threads : threads);
    parallel_for(partitions, 1, [&](long begin, long end) {
        for (long k = begin; k < end; k++) body(SequencePartition{k, partitions});
    });
}

}  // namespace handgrad::recurrence
