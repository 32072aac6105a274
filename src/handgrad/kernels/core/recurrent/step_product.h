// The products of a step: rows that the step before wrote, times weights that were packed once.
//
// Element is the panel element: a number or, in bf16, a Bf16x2 (core/gemm/bf16.h). Sums are
// numbers, float32 for Bf16x2.
#pragma once

#include <algorithm>
#include <array>

#include "core/gemm/amx.h"
#include "core/gemm/packs.h"
#include "core/recurrent/cell.h"

namespace handgrad::recurrence {

// The rows of a micro-kernel.
template <class Element>
int mr() {
    return on_amx<Element>() ? kAmxSide : kMR;
}

// Numbers side by side become elements side by side: copied, or rounded to Bf16x2.
template <class T>
void write_elements(T* row, const T* values, long count) {
    copy_values(row, values, count);
}
inline void write_elements(Bf16x2* row, const float* values, long count) {
    round_row(row, values, count);
}
// Left operands: (rows, k), block by block. AMX reads whole squares of them: elements beyond a
// row's last one are 0, as in the micro-panel of weights.
template <class Element>
class StepMatrix {
  public:
    using T = SumOf<Element>;

    StepMatrix(long rows, long k) : rows_(rows), k_blocks_(k), memory_(size()) {
        if (on_amx<Element>()) std::fill_n(memory_.data(), size(), Element{});
    }

    const RowKBlocks<Element>& k_blocks() const { return k_blocks_; }
    Element* at(long block, long row) const {
        return memory_.data() + (block * rows_ + row) * kRowPitch;
    }
    StepRows<T> rows() const {
        if constexpr (std::is_same_v<Element, T>)
            return {memory_.data(), nullptr, rows_};
        else
            return {nullptr, memory_.data(), rows_};
    }
    // A whole row, null for zeros.
    void set(long row, const T* values) const {
        for (long b = 0; b < k_blocks_.count(); b++) {
            if (values == nullptr)
                std::fill_n(at(b, row), k_blocks_.elements(b), Element{});
            else
                write_elements(at(b, row), values + k_blocks_.first_k(b), k_blocks_.k(b));
        }
    }

  private:
    long size() const {
        return (k_blocks_.count() * rows_ + (on_amx<Element>() ? kAmxSide : 0)) * kRowPitch;
    }

    long rows_;
    RowKBlocks<Element> k_blocks_;
    Workspace<Element> memory_;
};

// Right operands: `slabs` matrices of (k, columns), packed; value (p, column) of a slab is at
// data[slab · slab_stride + column · column_stride + p · k_stride].
template <class Element>
class PackedWeights {
  public:
    using T = SumOf<Element>;

    PackedWeights(const T* data, long slabs, long slab_stride, long columns, long column_stride,
                  long k, long k_stride)
        : columns_(columns),
          slabs_(slabs),
          k_blocks_(k),
          memory_(panels() * slabs * k_blocks_.count() * panel_size(), [&] {
              return Packs::Key{reinterpret_cast<long>(data),
                                slabs,
                                slab_stride,
                                columns,
                                column_stride,
                                k,
                                k_stride,
                                long(sizeof(Element)),
                                k_blocks_.whole_elements(0)};
          }) {
        if (!memory_.is_new()) return;
        parallel_for(panels() * slabs, slabs, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long panel = i / slabs, slab = i % slabs;
                const StridedPack<T> slab_at{data + slab * slab_stride, column_stride, k_stride};
                const auto pack = panel_pack<Element>(slab_at, k);
                const auto [first, lanes, width] = this->columns(panel);
                for (long b = 0; b < k_blocks_.count(); b++) {
                    Element* packed = at(panel, slab, b);
                    pack(packed, width, first, lanes, k_blocks_.first(b), k_blocks_.elements(b));
                    std::fill(packed + k_blocks_.elements(b) * width,
                              packed + k_blocks_.whole_elements(b) * width, Element{});
                }
            }
        });
    }

    long panels() const { return (columns_ + kNR<T> - 1) / kNR<T>; }
    PanelColumns columns(long panel) const {
        const long first = panel * kNR<T>;
        const int lanes = static_cast<int>(std::min<long>(kNR<T>, columns_ - first));
        return {first, lanes, lanes <= kLanes<T> ? kLanes<T> : kNR<T>};
    }
    Element* at(long panel, long slab, long block) const {
        return memory_.data() +
               ((panel * slabs_ + slab) * k_blocks_.count() + block) * panel_size();
    }

  private:
    long panel_size() const { return k_blocks_.whole_elements(0) * kNR<T>; }

    long columns_, slabs_;
    RowKBlocks<Element> k_blocks_;
    PackedOperand<Element> memory_;
};

// AMX's tile (+)= rows of a StepMatrix × a micro-panel of weights. AMX writes whole squares, which
// rows with others behind them have no room for: those are made apart and copied.
inline void multiply_step_on_amx(int rows, int width, long elements, const Bf16x2* a,
                                 const Bf16x2* b, float* tile, bool accumulate, bool has_room) {
    const AmxRows left{a, kRowPitch, kAmxElements};
    if (has_room)
        return amx_micro_kernel(rows, width, elements, left, b, width, tile, width, accumulate);
    alignas(64) float apart[kAmxSide * kNR<float>];
    amx_micro_kernel(rows, width, elements, left, b, width, apart, width, false);
    for (long i = 0; i < long(rows) * width; i += kLanes<float>)
        store(tile + i, accumulate ? load(tile + i) + load(apart + i) : load(apart + i));
}

// A tile (+)= rows of a StepMatrix × a micro-panel of weights.
template <class Element>
void multiply_step(int rows, int width, long elements, const Element* a, const Element* b,
                   SumOf<Element>* tile, bool accumulate, bool has_room) {
    if constexpr (std::is_same_v<Element, Bf16x2>)
        if (on_amx<Element>())
            return multiply_step_on_amx(rows, width, elements, a, b, tile, accumulate, has_room);
    micro_kernel<kRowPitch>(rows, width, elements, a, b, tile, accumulate);
}

// One row × a micro-panel of each of some slabs. The sums of one alone are so few that each would
// wait for the one before; with those of all slabs the loads are what takes the time.
template <int Vectors, std::size_t Slabs, class T>
void multiply_row(long k, const T* a, std::array<const T*, Slabs> b,
                  const std::array<T*, Slabs>& sums, const std::array<bool, Slabs>& accumulate) {
    constexpr int n = kLanes<T>;
    Vec<T> values[Slabs][Vectors];
    for (std::size_t s = 0; s < Slabs; s++)
        for (int v = 0; v < Vectors; v++)
            values[s][v] = accumulate[s] ? load(sums[s] + v * n) : Vec<T>{};
    for (long p = 0; p < k; p++) {
        const Vec<T> left = splat(a[p]);
        for (std::size_t s = 0; s < Slabs; s++) {
            for (int v = 0; v < Vectors; v++)
                values[s][v] = fused(values[s][v], left, load(b[s] + v * n));
            b[s] += Vectors * n;
        }
    }
    for (std::size_t s = 0; s < Slabs; s++)
        for (int v = 0; v < Vectors; v++) store(sums[s] + v * n, values[s][v]);
}

// The tiles of a step, and the products that fill them.
template <class Element>
class Tiles : public TileSums<SumOf<Element>> {
  public:
    using T = SumOf<Element>;

    Tiles(long most_rows, int sums, long slots = 1)
        : TileSums<T>(mr<Element>(), sums, most_rows, slots) {}

    // Sum `sum_index` of every tile (+)= its rows of `a` × one micro-panel of weights.
    void multiply(int sum_index, const StepMatrix<Element>& a,
                  const PackedWeights<Element>& weights, long panel, long slab,
                  bool accumulate) const {
        for (long b = 0; b < a.k_blocks().count(); b++)
            for (long t = 0; t < this->count(); t++)
                multiply_step(this->height(t), weights.columns(panel).width,
                              a.k_blocks().elements(b), a.at(b, this->first(t)),
                              weights.at(panel, slab, b), this->sum(t, sum_index),
                              accumulate || b > 0, !this->is_part());
    }

    // The sums of a step: sum k (+)= the rows of `a` × slab slabs[k] of the weights, for every slab
    // that is not −1; accumulate[k] says whether the sum has a part already.
    void multiply_step_sums(const StepMatrix<Element>& a, const PackedWeights<Element>& weights,
                            long panel, const SlabNumbers& slabs,
                            const std::array<bool, kMostSlabs>& accumulate) const {
        const auto none = [](int slab) { return slab < 0; };
        if constexpr (std::is_same_v<Element, T>) {
            if (this->rows() == 1 &&
                std::none_of(slabs.begin(), slabs.begin() + this->sums(), none)) {
                if (this->sums() == 1)
                    multiply_one_row<1>(a, weights, panel, slabs, accumulate);
                else
                    multiply_one_row<kMostSlabs>(a, weights, panel, slabs, accumulate);
                return;
            }
        }
        for (std::size_t k = 0; k < static_cast<std::size_t>(this->sums()); k++)
            if (!none(slabs[k]))
                multiply(static_cast<int>(k), a, weights, panel, slabs[k], accumulate[k]);
    }

  private:
    template <std::size_t Sums>
    void multiply_one_row(const StepMatrix<T>& a, const PackedWeights<T>& weights, long panel,
                          const SlabNumbers& slabs,
                          const std::array<bool, kMostSlabs>& accumulate) const {
        for (long block = 0; block < a.k_blocks().count(); block++) {
            std::array<const T*, Sums> b;
            std::array<T*, Sums> sums;
            std::array<bool, Sums> add;
            for (std::size_t k = 0; k < Sums; k++) {
                b[k] = weights.at(panel, slabs[k], block);
                sums[k] = this->sum(0, static_cast<int>(k));
                add[k] = accumulate[k] || block > 0;
            }
            const long elements = a.k_blocks().elements(block);
            if (weights.columns(panel).width == kLanes<T>)
                multiply_row<1>(elements, a.at(block, 0), b, sums, add);
            else
                multiply_row<2>(elements, a.at(block, 0), b, sums, add);
        }
    }
};

}  // namespace handgrad::recurrence
