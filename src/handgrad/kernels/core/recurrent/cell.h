// The cell of a recurrent layer as the steps call it: the steps are compiled once for all cells.
#pragma once

#include <array>

#include "core/recurrent/layer.h"
#include "core/recurrent/row_panels.h"
#include "core/recurrent/step_rows.h"

namespace handgrad::recurrence {

// A cell has one slab, or four at most.
constexpr int kMostSlabs = 4;
using SlabNumbers = std::array<int, kMostSlabs>;

// The slabs of a cell's weights. Sum k of a step is made of slab from_x[k] of W_ih and slab
// from_h[k] of W_hh, −1 for none. Going backward, slab k of W_ih is multiplied with gate gradient
// to_x[k], and slab k of W_hh with to_h[k]; the first `shared` gate gradients belong to both. With
// `direct` a part of dh before is not from the product.
struct CellSlabs {
    int slabs, sums, gate_gradients, shared;
    SlabNumbers from_x{0, 1, 2, 3}, from_h{0, 1, 2, 3}, to_x{0, 1, 2, 3}, to_h{0, 1, 2, 3};
    bool direct = false;

    bool recurrent() const { return from_h[0] >= 0; }
};

// The columns of a micro-panel.
struct PanelColumns {
    long first;
    int lanes, width;
};

// The rows of a step in tiles of at most MR that differ by one row at most; `sums` sums for each.
// Of several slots one is in use at a time, each with tiles of its own.
template <class T>
class TileSums {
  public:
    TileSums(int mr, int sums, long most_rows, long slots)
        : mr_(mr),
          sums_(sums),
          slot_size_((most_rows + mr_ - 1) / mr_ * sums * size()),
          memory_(slots * slot_size_) {}

    // Goes on in this slot, with all of its rows.
    void select(long slot) { begin_ = slot * slot_size_, is_part_ = false; }
    // With some of them, before and behind which are others; they begin at `first_value` of each
    // of its tiles.
    void select_part(long slot, long first_value) {
        begin_ = slot * slot_size_ + first_value, is_part_ = true;
    }
    bool is_part() const { return is_part_; }

    void set_rows(long rows) {
        rows_ = rows;
        count_ = (rows + mr_ - 1) / mr_;
    }
    long rows() const { return rows_; }
    int sums() const { return sums_; }
    long count() const { return count_; }
    long first(long tile) const { return tile * rows_ / count_; }
    int height(long tile) const { return static_cast<int>(first(tile + 1) - first(tile)); }
    T* sum(long tile, int sum_index) const {
        return memory_.data() + begin_ + (tile * sums_ + sum_index) * size();
    }

    // body(row, lanes, vectors of the sums) for every row, a vector at a time.
    template <int Sums, class Body>
    void epilogue(const PanelColumns& columns, const Body& body) const {
        constexpr int n = kLanes<T>;
        for (long t = 0; t < count_; t++)
            for (int i = 0; i < height(t); i++)
                for (int c = 0; c < columns.lanes; c += n) {
                    std::array<Vec<T>, Sums> sums;
                    for (int s = 0; s < Sums; s++)
                        sums[s] = load(sum(t, s) + i * columns.width + c);
                    const long column = columns.first + c;
                    if (columns.lanes - c >= n)
                        body(first(t) + i, FullVector<T>{column}, sums);
                    else
                        body(first(t) + i, Tail<T>{column, columns.lanes - c}, sums);
                }
    }

  private:
    long size() const { return mr_ * kNR<T>; }

    long mr_;
    int sums_;
    long slot_size_, begin_ = 0, rows_ = 0, count_ = 0;
    bool is_part_ = false;
    Workspace<T> memory_;
};

// Where a step's new values go: to the rows that the next product reads, and to those of y, unless
// a projection comes first.
template <class T>
struct NewStates {
    const StepRow* row_of;
    const T* bias;  // of sum k at k · padded(H)
    StepRows<T> rows;
    T* y;
    long width;
};

// Where a step's gate gradients go: to the rows that the products of the step read, and to the
// micro-panels of those of the weights, each to a slab there.
template <class T>
struct NewGradients {
    std::array<StepRows<T>, kMostSlabs> rows;
    std::array<const RowPanels<T>*, kMostSlabs> panels;
    std::array<long, kMostSlabs> slabs;
};

template <class T>
class Cell {
  public:
    explicit Cell(const CellSlabs& slabs) : slabs(slabs) {}
    virtual ~Cell() = default;

    // The new h, or what is projected to it, of all rows for the hidden units of a micro-panel.
    virtual void step(const TileSums<T>& sums, const PanelColumns& columns, long hidden,
                      const NewStates<T>& to) const = 0;

    // The gate gradients of one row, number i of the step. `dc` comes and goes; `dh` receives the
    // direct part, and `m`, unless it is null, what forward projected.
    virtual void gate_gradients(const StepRow& row, long i, long hidden, const T* dm, T* dc, T* dh,
                                T* m, const NewGradients<T>& to) const = 0;

    const CellSlabs slabs;
};

// The loops of a cell that computes a vector at a time: Vectors::step(lanes, row, sums) keeps what
// it needs and gives the new h; gate_gradients(lanes, row, dm, dc, da, m) gives the gate gradients
// da, changes dc, and returns the direct part.
template <class T, class Vectors>
class CellOf final : public Cell<T> {
  public:
    explicit CellOf(const Vectors& vectors) : Cell<T>(Vectors::kSlabs), vectors_(vectors) {}

    void step(const TileSums<T>& sums, const PanelColumns& columns, long hidden,
              const NewStates<T>& to) const override {
        constexpr int kSums = Vectors::kSlabs.sums;
        static_assert(kSums == 1 || kSums == kMostSlabs);
        const long pitch = padded<T>(hidden);
        sums.template epilogue<kSums>(columns, [&](long i, auto lanes, auto& sums_here) {
            const StepRow& row = to.row_of[i];
            for (int k = 0; k < kSums; k++) sums_here[k] += lanes.load(to.bias + k * pitch);
            const Vec<T> value = vectors_.step(lanes, row, sums_here);
            to.rows.store(i, lanes, value);
            if (to.y != nullptr) lanes.store(to.y + row.position * to.width, value);
        });
    }

    void gate_gradients(const StepRow& row, long i, long hidden, const T* dm, T* dc, T* dh, T* m,
                        const NewGradients<T>& to) const override {
        constexpr int kGradients = Vectors::kSlabs.gate_gradients;
        transform<T>(0, hidden, [&](auto lanes) {
            Vec<T> dc_here = lanes.load(dc);
            std::array<Vec<T>, kGradients> gradients;
            const Vec<T> direct =
                vectors_.gate_gradients(lanes, row, lanes.load(dm), dc_here, gradients, m);
            lanes.store(dc, dc_here);
            for (int k = 0; k < kGradients; k++) {
                to.rows[k].store(i, lanes, gradients[k]);
                to.panels[k]->set(row.row, to.slabs[k], lanes.at, gradients[k]);
            }
            if constexpr (Vectors::kSlabs.direct) lanes.store(dh, direct);
        });
    }

  private:
    const Vectors& vectors_;
};

}  // namespace handgrad::recurrence
