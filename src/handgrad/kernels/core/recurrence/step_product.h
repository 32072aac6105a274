// The products of a step: rows that the step before wrote, times weights that were packed once.
//
// Element is the panel element: a number or, in bf16, a Bf16x2 (core/bf16.h). Sums are numbers,
// float32 for Bf16x2.
#pragma once

#include <algorithm>
#include <array>

#include "core/amx.h"
#include "core/elementwise.h"
#include "core/memory.h"
#include "core/packs.h"

namespace handgrad::recurrence {

template <class Element>
using Number = typename SumOf<Element>::type;

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

// Left operands: (rows, k), block by block. AMX reads whole squares of them: elements beyond a
// row's last one are 0, as in the micro-panel of weights.
template <class Element>
class StepMatrix {
  public:
    using T = Number<Element>;

    StepMatrix(long rows, long k) : rows_(rows), k_blocks_(k), memory_(size()) {
        if (on_amx<Element>()) std::fill_n(memory_.data(), size(), Element{});
    }

    const RowKBlocks<Element>& k_blocks() const { return k_blocks_; }
    Element* at(long block, long row) const {
        return memory_.data() + (block * rows_ + row) * kRowPitch;
    }
    // The lanes' columns of a row; a vector lies in one block.
    template <class Lanes>
    void store(long row, Lanes lanes, Vec<T> values) const {
        const long block = k_blocks_.block_of(lanes.at);
        write_lanes(at(block, row) - k_blocks_.first(block), lanes, values);
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
    using T = Number<Element>;

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
                for (long b = 0; b < k_blocks_.count(); b++) {
                    Element* packed = at(panel, slab, b);
                    pack(packed, width(panel), first(panel), lanes(panel), k_blocks_.first(b),
                         k_blocks_.elements(b));
                    std::fill(packed + k_blocks_.elements(b) * width(panel),
                              packed + k_blocks_.whole_elements(b) * width(panel), Element{});
                }
            }
        });
    }

    long panels() const { return (columns_ + kNR<T> - 1) / kNR<T>; }
    long first(long panel) const { return panel * kNR<T>; }
    int lanes(long panel) const {
        return static_cast<int>(std::min<long>(kNR<T>, columns_ - first(panel)));
    }
    int width(long panel) const { return lanes(panel) <= kLanes<T> ? kLanes<T> : kNR<T>; }
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

// A tile (+)= rows of a StepMatrix × a micro-panel of weights.
template <class Element>
void multiply_step(int rows, int width, long elements, const Element* a, const Element* b,
                   Number<Element>* tile, bool accumulate) {
    if constexpr (std::is_same_v<Element, Bf16x2>)
        if (on_amx<Element>())
            return amx_micro_kernel(rows, width, elements, {a, kRowPitch, kAmxElements}, b, width,
                                    tile, width, accumulate);
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
            for (int v = 0; v < Vectors; v++) values[s][v] += left * load(b[s] + v * n);
            b[s] += Vectors * n;
        }
    }
    for (std::size_t s = 0; s < Slabs; s++)
        for (int v = 0; v < Vectors; v++) store(sums[s] + v * n, values[s][v]);
}

// The rows of a step in tiles of at most MR that differ by one row at most; `Sums` sums for each.
// Of several slots one is in use at a time, each with tiles of its own.
template <class Element, int Sums>
class Tiles {
  public:
    using T = Number<Element>;

    explicit Tiles(long most_rows, long slots = 1)
        : mr_(mr<Element>()),
          slot_size_((most_rows + mr_ - 1) / mr_ * Sums * size()),
          memory_(slots * slot_size_) {}

    // Goes on in this slot; `first_value` is where the rows begin in each of its tiles.
    void select(long slot, long first_value) { begin_ = slot * slot_size_ + first_value; }

    void set_rows(long rows) {
        rows_ = rows;
        count_ = (rows + mr_ - 1) / mr_;
    }
    long count() const { return count_; }
    long first(long tile) const { return tile * rows_ / count_; }
    int height(long tile) const { return static_cast<int>(first(tile + 1) - first(tile)); }
    T* sum(long tile, int sum_index) const {
        return memory_.data() + begin_ + (tile * Sums + sum_index) * size();
    }

    // Sum `sum_index` of every tile (+)= its rows of `a` × one micro-panel of weights.
    void multiply(int sum_index, const StepMatrix<Element>& a,
                  const PackedWeights<Element>& weights, long panel, long slab,
                  bool accumulate) const {
        for (long b = 0; b < a.k_blocks().count(); b++)
            for (long t = 0; t < count_; t++)
                multiply_step(height(t), weights.width(panel), a.k_blocks().elements(b),
                              a.at(b, first(t)), weights.at(panel, slab, b), sum(t, sum_index),
                              accumulate || b > 0);
    }

    // The sums of a step: sum k (+)= the rows of `a` × slab slabs[k] of the weights, for every slab
    // that is not −1; accumulate[k] says whether the sum has a part already.
    void multiply_step_sums(const StepMatrix<Element>& a, const PackedWeights<Element>& weights,
                            long panel, const std::array<int, Sums>& slabs,
                            const std::array<bool, Sums>& accumulate) const {
        if constexpr (std::is_same_v<Element, T>) {
            if (rows_ == 1 &&
                std::none_of(slabs.begin(), slabs.end(), [](int slab) { return slab < 0; })) {
                multiply_one_row(a, weights, panel, slabs, accumulate);
                return;
            }
        }
        for (int k = 0; k < Sums; k++)
            if (slabs[static_cast<std::size_t>(k)] >= 0)
                multiply(k, a, weights, panel, slabs[static_cast<std::size_t>(k)],
                         accumulate[static_cast<std::size_t>(k)]);
    }

    // body(row, lanes, vectors of the sums) for every row, a vector at a time.
    template <class Body>
    void epilogue(const PackedWeights<Element>& weights, long panel, const Body& body) const {
        constexpr int n = kLanes<T>;
        const int lanes = weights.lanes(panel), width = weights.width(panel);
        for (long t = 0; t < count_; t++)
            for (int i = 0; i < height(t); i++)
                for (int c = 0; c < lanes; c += n) {
                    std::array<Vec<T>, Sums> sums;
                    for (int s = 0; s < Sums; s++) sums[s] = load(sum(t, s) + i * width + c);
                    const long column = weights.first(panel) + c;
                    if (lanes - c >= n)
                        body(first(t) + i, FullVector<T>{column}, sums);
                    else
                        body(first(t) + i, Tail<T>{column, lanes - c}, sums);
                }
    }

  private:
    void multiply_one_row(const StepMatrix<T>& a, const PackedWeights<T>& weights, long panel,
                          const std::array<int, Sums>& slabs,
                          std::array<bool, Sums> accumulate) const {
        for (long block = 0; block < a.k_blocks().count(); block++) {
            std::array<const T*, Sums> b;
            std::array<T*, Sums> sums;
            for (std::size_t k = 0; k < Sums; k++) {
                b[k] = weights.at(panel, slabs[k], block);
                sums[k] = sum(0, static_cast<int>(k));
            }
            const long elements = a.k_blocks().elements(block);
            if (weights.width(panel) == kLanes<T>)
                multiply_row<1>(elements, a.at(block, 0), b, sums, accumulate);
            else
                multiply_row<2>(elements, a.at(block, 0), b, sums, accumulate);
            accumulate.fill(true);
        }
    }

    long size() const { return mr_ * kNR<T>; }

    long mr_, slot_size_, begin_ = 0, rows_ = 0, count_ = 0;
    Workspace<T> memory_;
};

}  // namespace handgrad::recurrence
