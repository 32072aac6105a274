// The rows of a step as its products read them, written by the cell that computes them.
//
// Element is the panel element: a number or, in bf16, a Bf16x2 (core/gemm/bf16.h). Sums are
// numbers, float32 for Bf16x2.
#pragma once

#include <algorithm>

#include "core/elementwise/elementwise.h"
#include "core/gemm/amx.h"

namespace handgrad::recurrence {

// K in blocks of kRowKC elements, so that a micro-panel of weights stays in the first-level cache
// while it is multiplied with all rows of a step.
template <class Element>
class RowKBlocks {
  public:
    explicit RowKBlocks(long k) : elements_(elements_of<Element>(k)), k_(k) {}

    long count() const { return std::max((elements_ + kRowKC - 1) / kRowKC, 1L); }
    static long first(long block) { return block * kRowKC; }
    long elements(long block) const { return std::min(elements_ - first(block), kRowKC); }
    // With what AMX reads beyond them.
    long whole_elements(long block) const {
        return (elements(block) + kAmxElements - 1) / kAmxElements * kAmxElements;
    }
    static long first_k(long block) { return first(block) * kTermsPerElement<Element>; }
    long k(long block) const {
        return std::min(k_ - first_k(block), kRowKC * kTermsPerElement<Element>);
    }
    static long block_of(long k) { return k / (kRowKC * kTermsPerElement<Element>); }

  private:
    long elements_, k_;
};

template <class T>
long padded(long columns) {
    return (columns + kNR<T> - 1) / kNR<T> * kNR<T>;
}

template <class T, class Lanes>
void write_lanes(T* row, Lanes lanes, Vec<T> values) {
    lanes.store(row, values);
}
inline void write_lanes(Bf16x2* row, FullVector<float> lanes, Vec<float> values) {
    round_lanes(row + lanes.at / 2, values, kLanes<float>);
}
inline void write_lanes(Bf16x2* row, Tail<float> lanes, Vec<float> values) {
    round_lanes(row + lanes.at / 2, values, lanes.count);
}

// Rows of k values in one block of memory after another, of whichever element.
template <class T>
struct StepRows {
    T* numbers;
    Bf16x2* rounded;  // instead, in bf16
    long count;

    // The lanes' columns of a row; a vector lies in one block.
    template <class Lanes>
    void store(long row, Lanes lanes, Vec<T> values) const {
        if constexpr (kBf16Compiled && std::is_same_v<T, float>)
            if (rounded != nullptr) return write(rounded, row, lanes, values);
        write(numbers, row, lanes, values);
    }

  private:
    template <class Element, class Lanes>
    void write(Element* elements, long row, Lanes lanes, Vec<T> values) const {
        using Blocks = RowKBlocks<Element>;
        const long block = Blocks::block_of(lanes.at);
        write_lanes(elements + (block * count + row) * kRowPitch - Blocks::first(block), lanes,
                    values);
    }
};

}  // namespace handgrad::recurrence
