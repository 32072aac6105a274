// The gradients of the weights: one product each, over all steps of all sequences.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/recurrent/row_panels.h"
#include "core/recurrent/step_product.h"

namespace handgrad::recurrence {

// The factors of the rows of a RowPanels: a row of `width` values for each of them, null for zeros.
template <class T>
struct Operand {
    const T* const* rows;
    long width;
    T* target;  // (columns, width)
};

// The k that a product takes at a time, and k rounded up to a multiple of it: the rest is 0.
template <class Element>
long k_at_once() {
    return on_amx<Element>() ? kAmxK : kTermsPerElement<Element>;
}
template <class Element>
long whole_k(long k) {
    return (k + k_at_once<Element>() - 1) / k_at_once<Element>() * k_at_once<Element>();
}

// Rows of `width` values as panel elements: unpacked, or rounded, two rows to an element, in
// `rounded`.
template <class T>
const T* as_elements(T*, const T* rows, long, long) {
    return rows;
}
inline const Bf16x2* as_elements(Bf16x2* rounded, const float* rows, long width, long k) {
    round_panel(rounded, rows, width, k);
    std::fill(rounded + elements_of<Bf16x2>(k) * width,
              rounded + elements_of<Bf16x2>(whole_k<Bf16x2>(k)) * width, Bf16x2{});
    return rounded;
}

// A tile (+)= a packed tile of operands × elements of a micro-panel.
template <class Element>
void multiply_packed(int height, int width, long elements, const Element* a, const Element* b,
                     SumOf<Element>* tile, bool accumulate) {
    if constexpr (std::is_same_v<Element, Bf16x2>)
        if (on_amx<Element>())
            return amx_micro_kernel(height, width, elements,
                                    {a, kAmxElements, kAmxSide * kAmxElements}, b, width, tile,
                                    width, accumulate);
    micro_kernel(height, width, elements, a, b, tile, accumulate);
}

// sums (+)= the sum of the rows of a micro-panel.
template <class T>
void add_rows(T* sums, const T* rows, int width, long k, bool accumulate) {
    for (int c = 0; c < width; c += kLanes<T>) {
        Vec<T> sum = accumulate ? load(sums + c) : Vec<T>{};
        for (long r = 0; r < k; r++) sum += load(rows + r * width + c);
        store(sums + c, sum);
    }
}

// True if the next operand is prefetched. In bf16 a product is over before it could come: there it
// took 5 % longer.
template <class Element>
constexpr bool kPrefetches = kTermsPerElement<Element> == 1;

// Prefetches one of so many parts of the next operand, into the second-level cache.
template <class T>
void prefetch_part(const T* values, long count, long part, long parts) {
    constexpr long kLine = 64 / sizeof(T);
    const long lines = (count + kLine - 1) / kLine;
    for (long l = part * lines / parts; l < (part + 1) * lines / parts; l++)
        __builtin_prefetch(values + l * kLine, 0, 2);
}

// The operands side by side, in tiles of at most MR.
template <class Element>
class OperandTiles {
  public:
    using T = SumOf<Element>;

    explicit OperandTiles(const std::vector<Operand<T>>& operands) : operands_(operands) {
        for (const Operand<T>& operand : operands) width_ += operand.width;
    }

    long count() const { return (width_ + mr_ - 1) / mr_; }
    int height(long tile) const {
        return static_cast<int>(std::min<long>(mr_, width_ - tile * mr_));
    }

    // From one packed tile to the next: whole vectors are stored, so there is room for more.
    long stride(long elements) const { return mr_ * elements + mr_ + kLanes<T>; }

    // Packs all tiles of k rows, from first_k on. The operands of a few rows are first put side by
    // side, as vectors cannot be read at once from memory that others are just being written to; a
    // store beyond the lanes of a tile is corrected by that of the next element.
    void pack(Element* packed, long first_k, long k) const {
        const Workspace<T> rows(kRowsAtOnce * pitch());
        const Workspace<Element> rounded(kTermsPerElement<Element> > 1 ? kRowsAtOnce * pitch() : 0);
        const long tile = stride(elements_of<Element>(whole_k<Element>(k)));
        for (long p = 0; p < k; p += kRowsAtOnce) {
            const long some = std::min(kRowsAtOnce, k - p);
            for (long r = 0; r < some; r++) {
                gather(rows.data() + r * pitch(), first_k + p + r);
                if (kPrefetches<Element> && p + r + kRowsAtOnce < k)
                    prefetch(first_k + p + r + kRowsAtOnce);
            }
            const Element* values = as_elements(rounded.data(), rows.data(), pitch(), some);
            for (long t = 0; t < count(); t++)
                write_tile(packed + t * tile, elements_of<Element>(p), height(t), values + t * mr_,
                           elements_of<Element>(some));
        }
    }

    // Writes a tile of the products, (height, width of the panel), to the targets of its values.
    void write(long tile, const T* sums, int width, long first_column, int columns) const {
        long begin = 0;
        for (const Operand<T>& operand : operands_) {
            const long from = std::max(tile * mr_, begin);
            const long to = std::min(tile * mr_ + height(tile), begin + operand.width);
            for (int c = 0; c < columns && from < to; c++) {
                T* target = operand.target + (first_column + c) * operand.width - begin;
                for (long f = from; f < to; f++) target[f] = sums[(f - tile * mr_) * width + c];
            }
            begin += operand.width;
        }
    }

  private:
    static constexpr long kRowsAtOnce = std::is_same_v<Element, Bf16x2> ? kAmxK : 8;

    long pitch() const { return count() * mr_ + mr_ + kLanes<T>; }

    // Writes these elements of a tile, from the first on. On AMX those of a column are adjacent.
    void write_tile(Element* tile, long first, int height, const Element* values,
                    long elements) const {
        if constexpr (std::is_same_v<Element, Bf16x2>)
            if (on_amx<Element>()) {
                for (long l = 0; l < kAmxSide; l += kAmxElements)
                    pack_transposed_square(
                        reinterpret_cast<float*>(tile + first * kAmxSide + l * kAmxElements),
                        kAmxElements, kAmxElements, kAmxElements, [&](int e) {
                            return reinterpret_cast<const float*>(values + e * pitch() + l);
                        });
                return;
            }
        for (long e = 0; e < elements; e++)
            for (int l = 0; l < kMR; l += kLanes<T>)
                std::memcpy(tile + (first + e) * height + l, values + e * pitch() + l,
                            kVectorBytes);
    }

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

    // Rows lie far apart, where no hardware prefetcher finds the next.
    void prefetch(long row) const {
        for (const Operand<T>& operand : operands_)
            for (long c = 0; operand.rows[row] != nullptr && c < operand.width;
                 c += 64 / static_cast<long>(sizeof(T)))
                __builtin_prefetch(operand.rows[row] + c);
    }

    const std::vector<Operand<T>>& operands_;
    const long mr_ = mr<Element>();
    long width_ = 0;
};

// target[column] = Σ da[row, column] operand[row] over all rows, and dbias[column] = Σ da[row,
// column]. The operands are the left matrix, which is packed, some rows at a time, so that they
// stay in the second-level cache.
template <class Element>
void weight_gradients(const RowPanels<SumOf<Element>>& da,
                      std::vector<Operand<SumOf<Element>>> operands, SumOf<Element>* dbias) {
    using T = SumOf<Element>;
    std::erase_if(operands, [](const Operand<T>& o) { return o.target == nullptr; });
    if (operands.empty() && dbias == nullptr) return;
    const OperandTiles<Element> tiles(operands);
    const KBlocks k_blocks(da.rows(), kRowKC * kTermsPerElement<Element>, k_at_once<Element>());
    const long most = elements_of<Element>(k_blocks.size), size = mr<Element>() * kNR<T>;
    const bool small = double(da.panels() * tiles.count() * size) * double(da.rows()) < 2e5;
    // The micro-panels whose sums stay in the second-level cache too.
    constexpr long kMostPanels = 16;
    const long chunk =
        small ? da.panels()
              : std::min((da.panels() + get_threads() - 1) / get_threads(), kMostPanels);
    parallel_for(da.panels(), chunk, [&](long begin, long end) {
        const Workspace<Element> packed(tiles.count() * tiles.stride(most));
        const Workspace<Element> rounded(kTermsPerElement<Element> > 1 ? most * kNR<T> : 0);
        const Workspace<T> sums((end - begin) * tiles.count() * size);
        const Workspace<T> totals((end - begin) * kNR<T>);
        const Registers<Element> registers;
        for (long kb = 0; kb < k_blocks.count; kb++) {
            const long first_k = std::min(kb * k_blocks.size, da.rows());
            const long k = std::min(k_blocks.size, da.rows() - first_k);
            const long elements = elements_of<Element>(whole_k<Element>(k));
            tiles.pack(packed.data(), first_k, k);
            for (long panel = begin; panel < end; panel++) {
                breathe();
                const int width = da.width(panel);
                const T* rows = da.at(panel, first_k);
                const Element* values = as_elements(rounded.data(), rows, width, k);
                const T* next =
                    panel + 1 < end ? da.at(panel + 1, first_k) : da.at(begin, first_k + k);
                for (long t = 0; t < tiles.count(); t++) {
                    if (kPrefetches<Element>) prefetch_part(next, k * width, t, tiles.count());
                    multiply_packed(tiles.height(t), width, elements,
                                    packed.data() + t * tiles.stride(elements), values,
                                    sums.data() + ((panel - begin) * tiles.count() + t) * size,
                                    kb > 0);
                }
                if (dbias != nullptr)
                    add_rows(totals.data() + (panel - begin) * kNR<T>, rows, width, k, kb > 0);
            }
        }
        for (long panel = begin; panel < end; panel++) {
            for (long t = 0; t < tiles.count(); t++)
                tiles.write(t, sums.data() + ((panel - begin) * tiles.count() + t) * size,
                            da.width(panel), da.first(panel), da.lanes(panel));
            if (dbias != nullptr)
                copy_values(dbias + da.first(panel), totals.data() + (panel - begin) * kNR<T>,
                            da.lanes(panel));
        }
    });
}

}  // namespace handgrad::recurrence
