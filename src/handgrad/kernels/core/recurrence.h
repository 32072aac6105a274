// Recurrent layers over whole sequences: what rnn, lstm, gru and leaky_rnn share.
//
// Sequences do not depend on each other, so each thread takes some of them through all steps and
// waits for nobody. The weights are packed once. A step multiplies the rows [x_t, h_{t−1}] of its
// sequences with them, all gates of a few hidden units at a time, and the cell turns these sums
// into h_t while they are at hand. Going backward, a step first turns dh_t into the gradients da_t
// of the sums, and the products of da_t with the same weights are dx_t and dh_{t−1}. The gradients
// of the weights are one product each, over all steps of all sequences.
//
// Longer sequences come first, so that those which have a step at time t are the first few, and
// padding is in no product. What is kept for backward has one row for each step that counts, all of
// time 0 before those of time 1: how the sequences are shared out leaves no trace in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "core/binding.h"
#include "core/elementwise.h"
#include "core/matmul.h"
#include "core/memory.h"
#include "core/vectormath.h"

namespace handgrad::recurrence {

// One step of one sequence; `before` is the row of the step that runs before it, −1 if none does.
struct StepRow {
    long sequence;
    long place, place_before;  // in (N, T)
    long row, row_before;      // in what is kept for backward
};

// Which sequences have a step at which time.
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
            std::stable_sort(order_.begin(), order_.end(),
                             [&](long a, long b) { return lengths[a] > lengths[b]; });
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
    // Sequences that have a step at time t: those of rank 0 to active(t) − 1.
    long active(long t) const { return start(t + 1) - start(t); }
    long sequence(long rank) const { return order_[static_cast<std::size_t>(rank)]; }
    long length(long rank) const { return lengths_[static_cast<std::size_t>(rank)]; }
    // The time of the step that runs as number s.
    long time(long s) const { return reverse_ ? steps_ - 1 - s : s; }
    // The time of a sequence's last step to run, and that before time t; −1 if there is none.
    long last(long rank) const {
        return reverse_ ? std::min(length(rank), 1L) - 1 : length(rank) - 1;
    }
    long before(long rank, long t) const {
        return reverse_ ? (t + 1 < length(rank) ? t + 1 : -1) : t - 1;
    }
    long place(long rank, long t) const { return sequence(rank) * steps_ + t; }
    long row(long rank, long t) const { return start(t) + rank; }

    StepRow step(long rank, long t) const {
        const long b = before(rank, t);
        return {sequence(rank), place(rank, t), b < 0 ? -1 : place(rank, b), row(rank, t),
                b < 0 ? -1 : row(rank, b)};
    }

  private:
    long start(long t) const { return starts_[static_cast<std::size_t>(t)]; }

    long batch_, steps_;
    bool reverse_;
    std::vector<long> order_, lengths_, starts_;
};

// The sequences of rank first, first + stride, ...: long and short ones for everybody.
struct Share {
    long first, stride;
    long count(long active) const { return std::max((active - first + stride - 1) / stride, 0L); }
    long rank(long i) const { return first + i * stride; }
};

// body(share) for all sequences; every share has work for whole tiles if there is enough.
template <class Body>
void for_shares(const Sequences& sequences, long values_per_row, const Body& body) {
    const long batch = sequences.batch();
    const bool small = sequences.rows() * values_per_row < 200000;
    const long threads = small ? 1 : get_threads();
    const long shares =
        std::min(std::max(batch, 1L), batch >= 4 * threads * kTileRows ? 2 * threads : threads);
    parallel_for(shares, 1, [&](long begin, long end) {
        for (long k = begin; k < end; k++) body(Share{k, shares});
    });
}

// Terms of a sum that are taken at once, so that a panel of weights stays in the first-level cache
// while all rows of a step meet it; and what lies between rows, no power of two, which the cache
// would put on top of one another.
constexpr long kStepDepth = 256;
constexpr int kPitch = kStepDepth + 16;

template <class T>
Steps depth_steps(long depth) {
    return Steps(std::max(depth, 1L), kStepDepth, kTileColumns<T>);
}

template <class T>
long padded(long columns) {
    return (columns + kTileColumns<T> - 1) / kTileColumns<T> * kTileColumns<T>;
}

// Left operands: (rows, depth), in blocks of kStepDepth columns.
template <class T>
class StepMatrix {
  public:
    StepMatrix(long rows, long depth)
        : rows_(rows),
          depth_(depth),
          steps_(depth_steps<T>(depth)),
          memory_(steps_.count * rows * kPitch) {}

    long depth() const { return depth_; }
    long blocks() const { return steps_.count; }
    long terms(long block) const {
        return std::clamp(depth_ - block * steps_.size, 0L, steps_.size);
    }
    T* at(long block, long row) const { return memory_.data() + (block * rows_ + row) * kPitch; }
    // What stands at `column` of `row` is row_at(row, column)[column]; a vector lies in one block.
    T* row_at(long row, long column) const {
        const long block = column / steps_.size;
        return at(block, row) - block * steps_.size;
    }
    void set(long row, const T* values) const {
        for (long b = 0; b < blocks(); b++) {
            if (values == nullptr)
                std::fill_n(at(b, row), terms(b), T(0));
            else
                copy_values(at(b, row), values + b * steps_.size, terms(b));
        }
    }

  private:
    long rows_, depth_;
    Steps steps_;
    Temporary<T> memory_;
};

// Right operands: `slabs` matrices of (depth, columns), packed; value (term, column) of a slab is
// at data[slab · slab_stride + column · column_stride + term · term_stride].
template <class T>
class PackedWeights {
  public:
    PackedWeights(const T* data, long slabs, long slab_stride, long columns, long column_stride,
                  long depth, long term_stride)
        : columns_(columns),
          slabs_(slabs),
          steps_(depth_steps<T>(depth)),
          memory_(panels() * slabs * steps_.count * panel_size()) {
        parallel_for(panels() * slabs, slabs, [&](long begin, long end) {
            for (long k = begin; k < end; k++) {
                const long panel = k / slabs, slab = k % slabs;
                const StridedPack<T> pack{data + slab * slab_stride, column_stride, term_stride};
                for (long b = 0; b < steps_.count; b++)
                    pack(at(panel, slab, b), width(panel), first(panel), lanes(panel),
                         b * steps_.size, std::min(steps_.size, depth - b * steps_.size));
            }
        });
    }

    long panels() const { return (columns_ + kTileColumns<T> - 1) / kTileColumns<T>; }
    long first(long panel) const { return panel * kTileColumns<T>; }
    int lanes(long panel) const {
        return static_cast<int>(std::min<long>(kTileColumns<T>, columns_ - first(panel)));
    }
    int width(long panel) const { return lanes(panel) <= kLanes<T> ? kLanes<T> : kTileColumns<T>; }
    T* at(long panel, long slab, long block) const {
        return memory_.data() + ((panel * slabs_ + slab) * steps_.count + block) * panel_size();
    }

  private:
    long panel_size() const { return steps_.size * kTileColumns<T>; }

    long columns_, slabs_;
    Steps steps_;
    Temporary<T> memory_;
};

// The rows of a step cut into register tiles that differ by one row at most; `Sums` sums for each.
template <class T, int Sums>
class Tiles {
  public:
    explicit Tiles(long most_rows)
        : memory_((most_rows + kTileRows - 1) / kTileRows * Sums * kSize) {}

    void cut(long rows) {
        rows_ = rows;
        count_ = (rows + kTileRows - 1) / kTileRows;
    }
    long count() const { return count_; }
    long first(long tile) const { return tile * rows_ / count_; }
    int height(long tile) const { return static_cast<int>(first(tile + 1) - first(tile)); }
    T* sum(long tile, int which) const { return memory_.data() + (tile * Sums + which) * kSize; }

    // sum `which` of every tile (+)= its rows of `a` × one panel of weights.
    void multiply(int which, const StepMatrix<T>& a, const PackedWeights<T>& weights, long panel,
                  long slab, bool accumulate) const {
        for (long b = 0; b < a.blocks(); b++)
            for (long t = 0; t < count_; t++)
                multiply_tile<T, kPitch>(height(t), weights.width(panel), a.terms(b),
                                         a.at(b, first(t)), weights.at(panel, slab, b),
                                         sum(t, which), accumulate || b > 0);
    }

    // body(row, lanes, vectors of the sums) for every row, a vector at a time.
    template <class Body>
    void finish(const PackedWeights<T>& weights, long panel, const Body& body) const {
        constexpr int n = kLanes<T>;
        const int lanes = weights.lanes(panel), width = weights.width(panel);
        for (long t = 0; t < count_; t++)
            for (int i = 0; i < height(t); i++)
                for (int c = 0; c < lanes; c += n) {
                    std::array<Vec<T>, Sums> sums;
                    for (int s = 0; s < Sums; s++) sums[s] = load(sum(t, s) + i * width + c);
                    const long column = weights.first(panel) + c;
                    if (lanes - c >= n)
                        body(first(t) + i, AllLanes<T>{column}, sums);
                    else
                        body(first(t) + i, SomeLanes<T>{column, lanes - c}, sums);
                }
    }

  private:
    static constexpr long kSize = long(kTileRows) * kTileColumns<T>;
    long rows_ = 0, count_ = 0;
    Temporary<T> memory_;
};

// What an op is given. H hidden units, and P values in h, fewer with a projection weight_hr (P, H);
// weight_hh, weight_hr and what is optional may be null.
template <class T>
struct Inputs {
    const T* x;  // (N, T, D)
    long features;
    const T* weight_ih;  // (slabs · H, D)
    const T* weight_hh;  // (slabs · H, P)
    const T* weight_hr;
    const T* bias_ih;
    const T* bias_hh;
    const T* h0;
    long hidden, size;
    T* y;  // (N, T, P), 0 for padding: also h of every step

    // h before this step, null for zeros.
    const T* h_before(const StepRow& at) const {
        if (at.place_before >= 0) return y + at.place_before * size;
        return h0 == nullptr ? nullptr : h0 + at.sequence * size;
    }
};

// The row of what is kept of the step before, or of the initial state, or null for zeros.
template <class T>
const T* kept_before(const StepRow& at, const T* kept, const T* initial, long width) {
    if (at.row_before >= 0) return kept + at.row_before * width;
    return initial == nullptr ? nullptr : initial + at.sequence * width;
}

template <class T, class Lanes>
Vec<T> load_or_zero(Lanes lanes, const T* row) {
    return row == nullptr ? Vec<T>{} : lanes.load(row);
}

// target[n] = rows[last step of n] of `width`, or the initial state.
template <class T>
void write_final(T* target, const T* last, const T* initial, long sequence, long width) {
    T* row = target + sequence * width;
    if (last != nullptr)
        copy_values(row, last, width);
    else if (initial != nullptr)
        copy_values(row, initial + sequence * width, width);
    else
        std::fill_n(row, width, T(0));
}

template <class T>
void clear_padding(T* values, const Sequences& sequences, long rank, long width) {
    std::fill_n(values + sequences.place(rank, 0) * width + sequences.length(rank) * width,
                (sequences.steps() - sequences.length(rank)) * width, T(0));
}

// y and the final h. A cell says which slabs of W_ih and W_hh its sums are made of (−1 for none),
// and step(lanes, row, sums, h before) keeps what it needs and gives the new h.
template <class T, class Cell>
void run_forward(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, T* h_n) {
    constexpr int S = Cell::kSums;
    constexpr bool kRecurrent = Cell::kFromH[0] >= 0;
    const long H = in.hidden, P = in.size, D = in.features;
    constexpr long kSlabs = Cell::kSlabs;
    const PackedWeights<T> from_x(in.weight_ih, kSlabs, H * D, H, D, D, 1);
    std::optional<PackedWeights<T>> from_h, projection;
    if constexpr (kRecurrent) from_h.emplace(in.weight_hh, kSlabs, H * P, H, P, P, 1);
    if (in.weight_hr != nullptr) projection.emplace(in.weight_hr, 1, 0, P, H, H, 1);
    const Temporary<T> bias(S * padded<T>(H));
    for (int s = 0; s < S; s++)
        for (long u = 0; u < H; u++) {
            T value = 0;
            if (in.bias_ih != nullptr && Cell::kFromX[s] >= 0)
                value += in.bias_ih[Cell::kFromX[s] * H + u];
            if (in.bias_hh != nullptr && Cell::kFromH[s] >= 0)
                value += in.bias_hh[Cell::kFromH[s] * H + u];
            bias.data()[s * padded<T>(H) + u] = value;
        }

    for_shares(sequences, S * H * (D + P), [&](Share share) {
        const long most = share.count(sequences.batch());
        const StepMatrix<T> x_t(most, D), m_t(projection ? most : 0, H);
        StepMatrix<T> first(most, P), second(most, P);
        StepMatrix<T>*h = &first, *h_new = &second;
        Tiles<T, S> tiles(most);
        Tiles<T, 1> projected(projection ? most : 0);
        std::vector<StepRow> rows(static_cast<std::size_t>(most));
        for (long i = 0; i < most; i++) {
            const T* initial =
                in.h0 == nullptr ? nullptr : in.h0 + sequences.sequence(share.rank(i)) * P;
            first.set(i, initial);
            second.set(i, initial);
        }
        for (long s = 0; s < sequences.steps(); s++) {
            const long t = sequences.time(s), active = share.count(sequences.active(t));
            if (active == 0) continue;
            for (long i = 0; i < active; i++) {
                const StepRow row = sequences.step(share.rank(i), t);
                rows[static_cast<std::size_t>(i)] = row;
                x_t.set(i, in.x + row.place * D);
            }
            tiles.cut(active);
            for (long panel = 0; panel < from_x.panels(); panel++) {
                for (int k = 0; k < S; k++) {
                    if (Cell::kFromX[k] >= 0)
                        tiles.multiply(k, x_t, from_x, panel, Cell::kFromX[k], false);
                    if (kRecurrent && Cell::kFromH[k] >= 0)
                        tiles.multiply(k, *h, *from_h, panel, Cell::kFromH[k],
                                       Cell::kFromX[k] >= 0);
                }
                tiles.finish(from_x, panel, [&](long i, auto lanes, auto& sums) {
                    const StepRow& row = rows[static_cast<std::size_t>(i)];
                    for (int k = 0; k < S; k++)
                        sums[k] += lanes.load(bias.data() + k * padded<T>(H));
                    if (projection) {
                        lanes.store(m_t.row_at(i, lanes.at), cell.step(lanes, row, sums, Vec<T>{}));
                    } else {
                        const Vec<T> value =
                            cell.step(lanes, row, sums, lanes.load(h->row_at(i, lanes.at)));
                        lanes.store(h_new->row_at(i, lanes.at), value);
                        lanes.store(in.y + row.place * P, value);
                    }
                });
            }
            if (projection) {
                projected.cut(active);
                for (long panel = 0; panel < projection->panels(); panel++) {
                    projected.multiply(0, m_t, *projection, panel, 0, false);
                    projected.finish(*projection, panel, [&](long i, auto lanes, auto& sums) {
                        lanes.store(h_new->row_at(i, lanes.at), sums[0]);
                        lanes.store(in.y + rows[static_cast<std::size_t>(i)].place * P, sums[0]);
                    });
                }
            }
            std::swap(h, h_new);
        }
        for (long i = 0; i < most; i++) {
            const long rank = share.rank(i), t = sequences.last(rank);
            write_final<T>(h_n, t < 0 ? nullptr : in.y + sequences.place(rank, t) * P, in.h0,
                           sequences.sequence(rank), P);
            clear_padding(in.y, sequences, rank, P);
        }
    });
}

// The gradients an op is asked for; null where one is not wanted.
template <class T>
struct Gradients {
    T* dx;
    T* dweight_ih;
    T* dweight_hh;
    T* dbias_ih;
    T* dbias_hh;
    T* dweight_hr;
    T* dh0;
    T* dc0;
};

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
// for zeros; `rows` is null for a one, whose product is the gradient of a bias.
template <class T>
struct Operand {
    const T* const* rows;
    long width;
    T* target;  // (columns, width)
};

// The operands side by side, cut into register tiles.
template <class T>
class OperandTiles {
  public:
    explicit OperandTiles(const std::vector<Operand<T>>& operands) : operands_(operands) {
        for (const Operand<T>& operand : operands) width_ += operand.width;
    }

    long count() const { return (width_ + kTileRows - 1) / kTileRows; }
    int height(long tile) const {
        return static_cast<int>(std::min<long>(kTileRows, width_ - tile * kTileRows));
    }

    // Values from one packed tile to the next: whole vectors are stored, so there is room for more.
    static long stride(long terms) { return kTileRows * terms + kTileRows + kLanes<T>; }

    // All tiles of `terms` rows. The operands of a few rows are first put side by side in `rows`,
    // as vectors cannot be read at once from where others are just being written; a store beyond
    // the lanes of a tile is put right by that of the next term.
    void pack(T* packed, T* rows, long term, long terms) const {
        for (long p = 0; p < terms; p += kRowsAtOnce) {
            const long end = std::min(p + kRowsAtOnce, terms);
            for (long r = p; r < end; r++) gather(rows + (r - p) * pitch(), term + r);
            for (long r = p; r < end; r++)
                for (long t = 0; t < count(); t++)
                    for (int l = 0; l < kTileRows; l += kLanes<T>)
                        store(packed + t * stride(terms) + r * height(t) + l,
                              load(rows + (r - p) * pitch() + t * kTileRows + l));
        }
    }
    long row_values() const { return kRowsAtOnce * pitch(); }

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
    static constexpr long kRowsAtOnce = 8;

    long pitch() const { return count() * kTileRows + kTileRows + kLanes<T>; }

    void gather(T* target, long row) const {
        for (const Operand<T>& operand : operands_) {
            const T* values = operand.rows == nullptr ? nullptr : operand.rows[row];
            if (values != nullptr)
                copy_values(target, values, operand.width);
            else
                std::fill_n(target, operand.width, operand.rows == nullptr ? T(1) : T(0));
            target += operand.width;
        }
    }

    const std::vector<Operand<T>>& operands_;
    long width_ = 0;
};

// target[column] = Σ da[row, column] operand[row] over all rows. The operands take the place of the
// left matrix, which is packed, some rows at a time, so that they stay in the second-level cache.
template <class T>
void weight_gradients(const RowPanels<T>& da, std::vector<Operand<T>> operands) {
    std::erase_if(operands, [](const Operand<T>& o) { return o.target == nullptr; });
    if (operands.empty()) return;
    const OperandTiles<T> tiles(operands);
    const Steps steps(da.rows(), kStepDepth);
    constexpr long kSize = long(kTileRows) * kTileColumns<T>;
    const bool small = double(da.panels() * tiles.count() * kSize) * double(da.rows()) < 2e5;
    // Of few enough panels for their sums to stay in the second-level cache too.
    constexpr long kMostPanels = 8;
    const long chunk =
        small ? da.panels()
              : std::min((da.panels() + get_threads() - 1) / get_threads(), kMostPanels);
    parallel_for(da.panels(), chunk, [&](long begin, long end) {
        const Temporary<T> packed(tiles.count() * tiles.stride(steps.size));
        const Temporary<T> rows(tiles.row_values());
        const Temporary<T> sums((end - begin) * tiles.count() * kSize);
        for (long s = 0; s < steps.count; s++) {
            const long term = std::min(s * steps.size, da.rows());
            const long terms = std::min(steps.size, da.rows() - term);
            tiles.pack(packed.data(), rows.data(), term, terms);
            for (long panel = begin; panel < end; panel++)
                for (long t = 0; t < tiles.count(); t++)
                    multiply_tile<T>(tiles.height(t), da.width(panel), terms,
                                     packed.data() + t * tiles.stride(terms), da.at(panel, term),
                                     sums.data() + ((panel - begin) * tiles.count() + t) * kSize,
                                     s > 0);
        }
        for (long panel = begin; panel < end; panel++)
            for (long t = 0; t < tiles.count(); t++)
                tiles.write(t, sums.data() + ((panel - begin) * tiles.count() + t) * kSize,
                            da.width(panel), da.first(panel), da.lanes(panel));
    });
}

// All gradients. step(lanes, row, dm, dc, da) gives the gradients da of the cell's kSlopes slabs,
// changes dc, and returns what dh before has besides the product; kToX and kToH say which slabs
// meet those of W_ih and W_hh.
template <class T, class Cell>
void run_backward(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, const T* dy,
                  const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    constexpr bool kRecurrent = Cell::kFromH[0] >= 0;
    constexpr int kSlopes = Cell::kSlopes;
    constexpr long kSlabs = Cell::kSlabs;
    const long H = in.hidden, P = in.size, D = in.features, all = sequences.rows();
    const long pitch = padded<T>(H), pitch_h = padded<T>(P);
    std::optional<PackedWeights<T>> to_x, to_h, unprojected;
    if (out.dx != nullptr) to_x.emplace(in.weight_ih, kSlabs, H * D, D, 1, H, D);
    if constexpr (kRecurrent) to_h.emplace(in.weight_hh, kSlabs, H * P, P, 1, H, P);
    if (in.weight_hr != nullptr) unprojected.emplace(in.weight_hr, 1, 0, H, 1, P, H);
    const bool keep_m = in.weight_hr != nullptr && out.dweight_hr != nullptr;
    // Slabs that W_ih and W_hh meet alike are one matrix; each of the others is one of its own.
    std::vector<std::unique_ptr<RowPanels<T>>> da;
    da.push_back(std::make_unique<RowPanels<T>>(all, Cell::kShared, H));
    for (int k = Cell::kShared; k < kSlopes; k++)
        da.push_back(std::make_unique<RowPanels<T>>(all, 1, H));
    const Temporary<T> m(keep_m ? all * H : 0);
    const RowPanels<T> dh_rows(keep_m ? all : 0, 1, P);

    for_shares(sequences, kSlopes * H * (D + P), [&](Share share) {
        const long most = share.count(sequences.batch());
        const Temporary<T> dh(most * pitch_h), dc(most * pitch), dm(unprojected ? most * pitch : 0);
        const StepMatrix<T> dh_t(unprojected ? most : 0, P);
        std::vector<std::optional<StepMatrix<T>>> da_t(kSlopes);
        for (auto& slab : da_t) slab.emplace(most, H);
        Tiles<T, 1> tiles(most);
        std::vector<StepRow> rows(static_cast<std::size_t>(most));
        const auto set = [](T* row, const T* values, long count) {
            if (values == nullptr)
                std::fill_n(row, count, T(0));
            else
                copy_values(row, values, count);
        };
        for (long i = 0; i < most; i++) {
            const long n = sequences.sequence(share.rank(i));
            set(dh.data() + i * pitch_h, dh_n == nullptr ? nullptr : dh_n + n * P, P);
            set(dc.data() + i * pitch, dc_n == nullptr ? nullptr : dc_n + n * H, H);
            if (out.dx != nullptr) clear_padding(out.dx, sequences, share.rank(i), D);
        }
        for (long s = sequences.steps() - 1; s >= 0; s--) {
            const long t = sequences.time(s), active = share.count(sequences.active(t));
            if (active == 0) continue;
            tiles.cut(active);
            for (long i = 0; i < active; i++) {
                const StepRow row = sequences.step(share.rank(i), t);
                rows[static_cast<std::size_t>(i)] = row;
                T* dh_row = dh.data() + i * pitch_h;
                for_lanes<T>(0, P, [&](auto lanes) {
                    lanes.store(dh_row, lanes.load(dh_row) + lanes.load(dy + row.place * P));
                });
                if (unprojected) dh_t.set(i, dh_row);
                if (keep_m)
                    for (long u = 0; u < P; u += kLanes<T>)
                        dh_rows.set(row.row, 0, u, load(dh_row + u));
            }
            if (unprojected)
                for (long panel = 0; panel < unprojected->panels(); panel++) {
                    tiles.multiply(0, dh_t, *unprojected, panel, 0, false);
                    tiles.finish(*unprojected, panel, [&](long i, auto lanes, auto& sums) {
                        lanes.store(dm.data() + i * pitch, sums[0]);
                    });
                }
            for (long i = 0; i < active; i++) {
                const StepRow& row = rows[static_cast<std::size_t>(i)];
                T* dh_row = dh.data() + i * pitch_h;
                const T* dm_row = unprojected ? dm.data() + i * pitch : dh_row;
                T* m_row = keep_m ? m.data() + row.row * H : nullptr;
                for_lanes<T>(0, H, [&](auto lanes) {
                    Vec<T> dc_here = lanes.load(dc.data() + i * pitch);
                    std::array<Vec<T>, kSlopes> slopes;
                    const Vec<T> direct =
                        cell.slopes(lanes, row, lanes.load(dm_row), dc_here, slopes, m_row);
                    lanes.store(dc.data() + i * pitch, dc_here);
                    for (int k = 0; k < kSlopes; k++) {
                        lanes.store(da_t[static_cast<std::size_t>(k)]->row_at(i, lanes.at),
                                    slopes[k]);
                        if (k < Cell::kShared)
                            da[0]->set(row.row, k, lanes.at, slopes[k]);
                        else
                            da[static_cast<std::size_t>(k - Cell::kShared + 1)]->set(
                                row.row, 0, lanes.at, slopes[k]);
                    }
                    if constexpr (Cell::kDirect) lanes.store(dh_row, direct);
                });
            }
            if constexpr (kRecurrent)
                for (long panel = 0; panel < to_h->panels(); panel++) {
                    for (int k = 0; k < kSlabs; k++)
                        tiles.multiply(0, *da_t[static_cast<std::size_t>(Cell::kToH[k])], *to_h,
                                       panel, k, k > 0);
                    tiles.finish(*to_h, panel, [&](long i, auto lanes, auto& sums) {
                        T* dh_row = dh.data() + i * pitch_h;
                        lanes.store(dh_row, Cell::kDirect ? lanes.load(dh_row) + sums[0] : sums[0]);
                    });
                }
            if (to_x)
                for (long panel = 0; panel < to_x->panels(); panel++) {
                    for (int k = 0; k < kSlabs; k++)
                        tiles.multiply(0, *da_t[static_cast<std::size_t>(Cell::kToX[k])], *to_x,
                                       panel, k, k > 0);
                    tiles.finish(*to_x, panel, [&](long i, auto lanes, auto& sums) {
                        lanes.store(out.dx + rows[static_cast<std::size_t>(i)].place * D, sums[0]);
                    });
                }
        }
        for (long i = 0; i < most; i++) {
            const long n = sequences.sequence(share.rank(i));
            if (out.dh0 != nullptr) copy_values(out.dh0 + n * P, dh.data() + i * pitch_h, P);
            if (out.dc0 != nullptr) copy_values(out.dc0 + n * H, dc.data() + i * pitch, H);
        }
    });

    std::vector<const T*> x_rows(static_cast<std::size_t>(all)), h_rows(x_rows.size());
    for (long t = 0; t < sequences.steps(); t++)
        for (long rank = 0; rank < sequences.active(t); rank++) {
            const StepRow row = sequences.step(rank, t);
            x_rows[static_cast<std::size_t>(row.row)] = in.x + row.place * D;
            h_rows[static_cast<std::size_t>(row.row)] = in.h_before(row);
        }
    const auto sums = [&](const RowPanels<T>& panels, long slab, bool with_x, bool with_h) {
        const auto at = [&](T* target, long width) {
            return target == nullptr ? nullptr : target + slab * H * width;
        };
        T* dbias_ih = with_x ? at(out.dbias_ih, 1) : nullptr;
        T* dbias_hh = with_h ? at(out.dbias_hh, 1) : nullptr;
        weight_gradients<T>(panels, {{x_rows.data(), D, with_x ? at(out.dweight_ih, D) : nullptr},
                                     {h_rows.data(), P, with_h ? at(out.dweight_hh, P) : nullptr},
                                     {nullptr, 1, dbias_ih != nullptr ? dbias_ih : dbias_hh}});
        if (dbias_ih != nullptr && dbias_hh != nullptr)
            copy_values(dbias_hh, dbias_ih, panels.slabs() * H);
    };
    sums(*da[0], 0, true, kRecurrent);
    if constexpr (kSlopes > Cell::kShared) {
        sums(*da[1], Cell::kShared, true, false);
        sums(*da[2], Cell::kShared, false, true);
    }
    if (keep_m) {
        std::vector<const T*> m_rows(static_cast<std::size_t>(all));
        for (long r = 0; r < all; r++) m_rows[static_cast<std::size_t>(r)] = m.data() + r * H;
        weight_gradients<T>(dh_rows, {{m_rows.data(), H, out.dweight_hr}});
    }
}

}  // namespace handgrad::recurrence
