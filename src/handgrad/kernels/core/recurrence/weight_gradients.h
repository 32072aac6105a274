// The gradients of the weights: one product each, over all steps of all sequences.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/recurrence/step_product.h"

namespace handgrad::recurrence {

// Rows of `slabs` times `columns` values as the panels of a product over the rows: what the steps
// write needs no packing when the weights' gradients are summed.
template <class T>
class RowPanels {
  public:
    RowPanels(long rows, long slabs, long columns)
        : rows_(rows),
          slabs_(slabs),
          columns_(columns),
          each_((columns + kTileColumns<T> - 1) / kTileColumns<T>),
          memory_(panels() * rows * kTileColumns<T>) {}

    long rows() const { return rows_; }
    long slabs() const { return slabs_; }
    long panels() const { return slabs_ * each_; }
    // The columns of a panel, counted through the slabs.
    long first(long panel) const { return panel / each_ * columns_ + within(panel); }
    int lanes(long panel) const {
        return static_cast<int>(std::min<long>(kTileColumns<T>, columns_ - within(panel)));
    }
    int width(long panel) const { return lanes(panel) <= kLanes<T> ? kLanes<T> : kTileColumns<T>; }
    T* at(long panel, long row) const {
        return memory_.data() + panel * rows_ * kTileColumns<T> + row * width(panel);
    }
    // The vector that begins at `column` of a slab, even where it goes beyond the last one.
    void set(long row, long slab, long column, Vec<T> values) const {
        const long panel = slab * each_ + column / kTileColumns<T>;
        store(at(panel, row) + column % kTileColumns<T>, values);
    }

  private:
    long within(long panel) const { return panel % each_ * kTileColumns<T>; }

    long rows_, slabs_, columns_, each_;
    Temporary<T> memory_;
};

// What the rows of a RowPanels are multiplied with: a row of `width` values for each of them, null
// for zeros.
template <class T>
struct Operand {
    const T* const* rows;
    long width;
    T* target;  // (columns, width)
};

// Rows of `width` values as the entries of a panel: as they stand, or rounded, pairs of rows, in
// `rounded`.
template <class T>
const T* as_entries(T*, const T* rows, long, long) {
    return rows;
}
inline const Pair* as_entries(Pair* rounded, const float* rows, long width, long terms) {
    round_panel(rounded, rows, width, terms);
    return rounded;
}

// sums (+)= the sum of the rows of a panel.
template <class T>
void add_rows(T* sums, const T* rows, int width, long terms, bool accumulate) {
    for (int c = 0; c < width; c += kLanes<T>) {
        Vec<T> sum = accumulate ? load(sums + c) : Vec<T>{};
        for (long r = 0; r < terms; r++) sum += load(rows + r * width + c);
        store(sums + c, sum);
    }
}

// The operands side by side, cut into register tiles.
template <class Entry>
class OperandTiles {
  public:
    using T = Number<Entry>;

    explicit OperandTiles(const std::vector<Operand<T>>& operands) : operands_(operands) {
        for (const Operand<T>& operand : operands) width_ += operand.width;
    }

    long count() const { return (width_ + kTileRows - 1) / kTileRows; }
    int height(long tile) const {
        return static_cast<int>(std::min<long>(kTileRows, width_ - tile * kTileRows));
    }

    // From one packed tile to the next: whole vectors are stored, so there is room for more.
    static long stride(long entries) { return kTileRows * entries + kTileRows + kLanes<T>; }

    // All tiles of `terms` rows, from `term` on. The operands of a few rows are first put side by
    // side, as vectors cannot be read at once from where others are just being written; a store
    // beyond the lanes of a tile is put right by that of the next entry.
    void pack(Entry* packed, long term, long terms) const {
        const Temporary<T> rows(kRowsAtOnce * pitch());
        const Temporary<Entry> rounded(kTermsEach<Entry> > 1 ? kRowsAtOnce * pitch() : 0);
        const long tile = stride(entries_of<Entry>(terms));
        for (long p = 0; p < terms; p += kRowsAtOnce) {
            const long some = std::min(kRowsAtOnce, terms - p);
            for (long r = 0; r < some; r++) gather(rows.data() + r * pitch(), term + p + r);
            const Entry* values = as_entries(rounded.data(), rows.data(), pitch(), some);
            const long first = entries_of<Entry>(p);
            for (long e = 0; e < entries_of<Entry>(some); e++)
                for (long t = 0; t < count(); t++)
                    for (int l = 0; l < kTileRows; l += kLanes<T>)
                        std::memcpy(packed + t * tile + (first + e) * height(t) + l,
                                    values + e * pitch() + t * kTileRows + l, kVectorBytes);
        }
    }

    // A tile of the products, (height, width of the panel), to where its values belong.
    void write(long tile, const T* sums, int width, long first_column, int columns) const {
        long begin = 0;
        for (const Operand<T>& operand : operands_) {
            const long from = std::max(tile * kTileRows, begin);
            const long to = std::min(tile * kTileRows + height(tile), begin + operand.width);
            for (int c = 0; c < columns && from < to; c++) {
                T* target = operand.target + (first_column + c) * operand.width - begin;
                for (long f = from; f < to; f++)
                    target[f] = sums[(f - tile * kTileRows) * width + c];
            }
            begin += operand.width;
        }
    }

  private:
    static constexpr long kRowsAtOnce = 8 * kTermsEach<Entry>;

    long pitch() const { return count() * kTileRows + kTileRows + kLanes<T>; }

    void gather(T* target, long row) const {
        for (const Operand<T>& operand : operands_) {
            const T* values = operand.rows[row];
            if (values != nullptr)
                copy_values(target, values, operand.width);
            else
                std::fill_n(target, operand.width, T(0));
            target += operand.width;
        }
    }

    const std::vector<Operand<T>>& operands_;
    long width_ = 0;
};

// target[column] = Σ da[row, column] operand[row] over all rows, and dbias[column] = Σ da[row,
// column]. The operands take the place of the left matrix, which is packed, some rows at a time, so
// that they stay in the second-level cache.
template <class Entry>
void weight_gradients(const RowPanels<Number<Entry>>& da,
                      std::vector<Operand<Number<Entry>>> operands, Number<Entry>* dbias) {
    using T = Number<Entry>;
    std::erase_if(operands, [](const Operand<T>& o) { return o.target == nullptr; });
    if (operands.empty() && dbias == nullptr) return;
    const OperandTiles<Entry> tiles(operands);
    const Steps steps(da.rows(), kRowDepth * kTermsEach<Entry>, kTermsEach<Entry>);
    const long most = entries_of<Entry>(steps.size);
    constexpr long kSize = long(kTileRows) * kTileColumns<T>;
    const bool small = double(da.panels() * tiles.count() * kSize) * double(da.rows()) < 2e5;
    // Of few enough panels for their sums to stay in the second-level cache too.
    constexpr long kMostPanels = 8;
    const long chunk =
        small ? da.panels()
              : std::min((da.panels() + get_threads() - 1) / get_threads(), kMostPanels);
    parallel_for(da.panels(), chunk, [&](long begin, long end) {
        const Temporary<Entry> packed(tiles.count() * tiles.stride(most));
        const Temporary<Entry> rounded(kTermsEach<Entry> > 1 ? most * kTileColumns<T> : 0);
        const Temporary<T> sums((end - begin) * tiles.count() * kSize);
        const Temporary<T> totals((end - begin) * kTileColumns<T>);
        for (long s = 0; s < steps.count; s++) {
            const long term = std::min(s * steps.size, da.rows());
            const long terms = std::min(steps.size, da.rows() - term);
            const long entries = entries_of<Entry>(terms);
            tiles.pack(packed.data(), term, terms);
            for (long panel = begin; panel < end; panel++) {
                const int width = da.width(panel);
                const T* rows = da.at(panel, term);
                const Entry* values = as_entries(rounded.data(), rows, width, terms);
                for (long t = 0; t < tiles.count(); t++)
                    multiply_tile(
                        tiles.height(t), width, entries, packed.data() + t * tiles.stride(entries),
                        values, sums.data() + ((panel - begin) * tiles.count() + t) * kSize, s > 0);
                if (dbias != nullptr)
                    add_rows(totals.data() + (panel - begin) * kTileColumns<T>, rows, width, terms,
                             s > 0);
            }
        }
        for (long panel = begin; panel < end; panel++) {
            for (long t = 0; t < tiles.count(); t++)
                tiles.write(t, sums.data() + ((panel - begin) * tiles.count() + t) * kSize,
                            da.width(panel), da.first(panel), da.lanes(panel));
            if (dbias != nullptr)
                copy_values(dbias + da.first(panel),
                            totals.data() + (panel - begin) * kTileColumns<T>, da.lanes(panel));
        }
    });
}

}  // namespace handgrad::recurrence
