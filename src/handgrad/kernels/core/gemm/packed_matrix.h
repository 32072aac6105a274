// A matrix that many small products use, such as the weight of a recurrent step: packed once.
//
// Element is the panel element: a number or, in bf16, a Bf16x2 (core/gemm/bf16.h).
#pragma once

#include "core/gemm/amx.h"
#include "core/gemm/bf16x2_product.h"
#include "core/runtime/memory.h"

namespace handgrad {

// B of C = A B, (k, columns), in micro-panels; then C for a few rows of A at a time.
template <class Element>
class PackedMatrix {
  public:
    using T = SumOf<Element>;

    PackedMatrix(long k, long columns, const StridedPack<T>& matrix)
        : k_(k),
          columns_(columns),
          panels_((columns + kWidth - 1) / kWidth),
          packed_(panels_ * whole() * kWidth) {
        parallel_for(panels_, 1, [&](long begin, long end) {
            const auto pack = panel_pack<Element>(matrix, k);
            for (long q = begin; q < end; q++) {
                Element* panel = packed_.data() + q * whole() * kWidth;
                pack(panel, width(q), q * kWidth, lanes(q), 0, elements());
                std::fill(panel + elements() * width(q), panel + whole() * width(q), Element{});
            }
        });
    }

    // C for `rows` <= kMR rows from `row` on of a matrix whose rows are in one piece; epilogue as
    // in `multiply`. For Bf16x2 this thread holds Registers<Bf16x2>.
    template <class Epilogue>
    void multiply_rows(long row, int rows, const StridedPack<T>& matrix,
                       const Epilogue& epilogue) const {
        T* tile = thread_workspace<T>(WorkspaceSlot::kSums, kAmxSide * kWidth);
        Element* left = thread_workspace<Element>(WorkspaceSlot::kPanelA, kAmxSide * whole());
        pack_left(left, row, rows, matrix);
        for (long q = 0; q < panels_; q++) {
            multiply(rows, width(q), left, packed_.data() + q * whole() * kWidth, tile);
            epilogue(row, rows, q * kWidth, lanes(q), tile, width(q));
        }
    }

  private:
    static constexpr long kWidth = kNR<T>;

    long elements() const { return elements_of<Element>(k_); }
    // With what AMX reads beyond them.
    long whole() const { return (elements() + kAmxElements - 1) / kAmxElements * kAmxElements; }
    int lanes(long q) const { return static_cast<int>(std::min(kWidth, columns_ - q * kWidth)); }
    int width(long q) const { return lanes(q) <= kLanes<T> ? kLanes<T> : static_cast<int>(kWidth); }

    static constexpr bool kIsBf16 = kBf16Compiled && std::is_same_v<Element, Bf16x2>;

    void pack_left(Element* left, long row, int rows, const StridedPack<T>& matrix) const {
        if constexpr (kIsBf16)
            if (on_amx<Element>()) {
                const T* values = matrix.data + row * matrix.lane_stride;
                for (long p = 0; p < k_; p += kAmxK)
                    round_left(left + p / 2 * kAmxSide, values + p, matrix.lane_stride, rows,
                               std::min(kAmxK, k_ - p));
                return;
            }
        panel_pack<Element>(matrix, k_)(left, rows, row, rows, 0, elements());
    }

    void multiply(int rows, int width, const Element* left, const Element* panel, T* tile) const {
        if constexpr (kIsBf16)
            if (on_amx<Element>())
                return amx_micro_kernel(rows, width, elements(),
                                        {left, kAmxElements, kAmxSide * kAmxElements}, panel, width,
                                        tile, width, false);
        micro_kernel(rows, width, elements(), left, panel, tile, false);
    }

    long k_, columns_, panels_;
    Workspace<Element> packed_;
};

}  // namespace handgrad
