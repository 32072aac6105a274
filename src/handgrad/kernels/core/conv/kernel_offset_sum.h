// Sums over the kernel offsets of a padded input: Z[p, l] = Σ_t V[t at p] K[t, l] at output
// positions p for every lane l.
//
// The image is the left operand, which is read one value at a time where it lies; the kernels are
// the right one, packed once for the whole batch into micro-panels as in matmul.h.
#pragma once

#include "core/conv/convolution_sizes.h"
#include "core/gemm/packs.h"

namespace handgrad {

// Packed right operands: micro-panels of NR lanes, or of half as many if that is enough.
template <class V>
struct MicroPanels {
    static constexpr long kWidth = kNR<V>;
    long lanes, terms;

    long count() const { return (lanes + kWidth - 1) / kWidth; }
    long size() const { return count() * terms * kWidth; }
    long at(long q) const { return q * terms * kWidth; }
    int lanes_of(long q) const { return static_cast<int>(std::min(kWidth, lanes - q * kWidth)); }
    int width_of(long q) const {
        return lanes_of(q) <= kLanes<V> ? kLanes<V> : static_cast<int>(kWidth);
    }
};

// The kernels of all groups: for each lane and each channel a plane of `size` values side by side.
template <class T>
struct Kernels {
    const T* data;
    long groups, lanes, channels, size;
    long group_stride, lane_stride, channel_stride;
};

// The sums of a row of positions. for_each_lane calls visit(lane, first position, positions, their
// sums), a vector of positions at a time. Here the lanes of a position lie side by side.
template <class T>
struct SumsByPosition {
    const T* values;
    int lanes, width;
    long positions;

    template <class Visit>
    void for_each_lane(const Visit& visit) const {
        constexpr int n = kLanes<T>;
        for (long p = 0; p < positions; p += n)
            for (int l = 0; l < lanes; l += n) {
                Vec<T> square[n];
#pragma GCC unroll 16
                for (int i = 0; i < n; i++)
                    square[i] = p + i < positions ? load(values + (p + i) * width + l) : Vec<T>{};
                transpose<T>(square);
                for (int i = 0; i < std::min(n, lanes - l); i++)
                    visit(l + i, p, std::min<long>(n, positions - p), square[i]);
            }
    }
};

// The sum over these kernel offsets and all channels, every lane of a kernel at once. V is the
// panel element. The sum runs through the kernel offsets row by row, in each row through the
// channels: rows of them that reach only the padding at some position are left out there.
template <class V>
class KernelOffsetSum {
  public:
    using T = SumOf<V>;

    KernelOffsetSum(const PaddedInput& padded, const Kernels<T>& kernels,
                    const std::vector<KernelOffset>& kernel_offsets)
        : padded_(padded),
          planes_(Operand<V>::planes(kernels.channels)),
          panels_{kernels.lanes, planes_ * static_cast<long>(kernel_offsets.size())},
          packed_(kernels.groups * panels_.size(),
                  [&] { return key_of(kernels, kernel_offsets, planes_); }) {
        for (const KernelOffset& kernel_offset : kernel_offsets)
            if (rows_.empty() || kernel_offset.row != rows_.back())
                rows_.push_back(kernel_offset.row);
        const auto across =
            static_cast<long>(kernel_offsets.size() / std::max<std::size_t>(rows_.size(), 1));
        row_terms_ = planes_ * across;
        for (const long row : rows_)
            for (long c = 0; c < planes_; c++)
                for (long n = 0; n < across; n++)
                    offsets_.push_back(row * padded.row_step(planes_) + c * padded.channel_step() +
                                       padded.at(kernel_offsets[n].column));
        if (!packed_.is_new()) return;
        parallel_for(kernels.groups * panels_.count(), 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++)
                pack(kernels, kernel_offsets, i / panels_.count(), i % panels_.count());
        });
    }

    // At these rows × columns positions, `step` rows of the padded input apart: epilogue(row, first
    // lane, sums) with the sums of each row of positions, or of a few rows if they can be `joined`
    // into one: whole vectors of positions are transposed and stored faster.
    template <class Epilogue>
    void run(const V* image, long group, Range rows, long columns, long step, bool joined,
             const Epilogue& epilogue) const {
        const V* kernel = packed_.data() + group * panels_.size();
        const long pieces = std::max((columns + kMR - 1) / kMR, 1L);
        const long together = joined && columns <= kJoinedColumns ? kJoinedRows : 1;
        T* values = thread_workspace<T>(WorkspaceSlot::kSums, together * columns * kNR<T>);
        for (long q = 0; q < panels_.count(); q++) {
            const int width = panels_.width_of(q);
            for (long first = rows.begin; first < rows.end; first += together) {
                breathe();
                const long some = std::min(together, rows.end - first);
                for (long j = first; j < first + some; j++) {
                    const Range inside = rows_inside(j * step);
                    const long skipped = inside.begin * row_terms_;
                    for (long piece = 0; piece < pieces; piece++) {
                        const long k = piece * columns / pieces;
                        const int positions = static_cast<int>((piece + 1) * columns / pieces - k);
                        gather_micro_kernel(positions, width, inside.count() * row_terms_,
                                            image + j * step * padded_.row_step(planes_) + k,
                                            offsets_.data() + skipped,
                                            kernel + panels_.at(q) + skipped * width,
                                            values + ((j - first) * columns + k) * width);
                    }
                }
                epilogue(first, q * kNR<T>,
                         SumsByPosition<T>{values, panels_.lanes_of(q), width, some * columns});
            }
        }
    }

  private:
    static constexpr long kJoinedRows = 4, kJoinedColumns = 64;

    static Packs::Key key_of(const Kernels<T>& kernels,
                             const std::vector<KernelOffset>& kernel_offsets, long planes) {
        Packs::Key key{reinterpret_cast<long>(kernels.data),
                       kernels.groups,
                       kernels.lanes,
                       kernels.channels,
                       kernels.size,
                       kernels.group_stride,
                       kernels.lane_stride,
                       kernels.channel_stride,
                       planes,
                       long(sizeof(V))};
        for (const KernelOffset& each : kernel_offsets)
            key.insert(key.end(), {each.index, each.row, each.column});
        return key;
    }

    // The rows of kernel offsets that reach the image from this row of the padded input.
    Range rows_inside(long row) const {
        Range inside{0, static_cast<long>(rows_.size())};
        while (inside.count() > 0 && !padded_.inside(row + rows_[inside.begin])) inside.begin++;
        while (inside.count() > 0 && !padded_.inside(row + rows_[inside.end - 1])) inside.end--;
        return inside;
    }

    // Packs a micro-panel: first channel by channel the values of all kernel offsets, then these in
    // the order of the sum.
    void pack(const Kernels<T>& kernels, const std::vector<KernelOffset>& kernel_offsets,
              long group, long q) {
        const long count = static_cast<long>(kernel_offsets.size()), first = q * panels_.kWidth;
        const int width = panels_.width_of(q), lanes = panels_.lanes_of(q);
        const bool all = count == kernels.size;
        // Planes that follow each other are one long row.
        const long together = all && kernels.channel_stride == count ? kernels.channels : 1;
        T* planes = thread_workspace<T>(WorkspaceSlot::kPanelA, kernels.channels * count * width);
        for (long c = 0; c < kernels.channels; c += together) {
            const T* plane =
                kernels.data + group * kernels.group_stride + c * kernels.channel_stride;
            T* values = planes + c * count * width;
            if (all)
                StridedPack<T>{plane, kernels.lane_stride, 1}(values, width, first, lanes, 0,
                                                              together * count);
            else
                for (long t = 0; t < count; t++)
                    for (int l = 0; l < width; l++)
                        values[t * width + l] =
                            l < lanes
                                ? plane[(first + l) * kernels.lane_stride + kernel_offsets[t].index]
                                : T(0);
        }
        V* packed = packed_.data() + group * panels_.size() + panels_.at(q);
        const long across = row_terms_ / std::max(planes_, 1L) * width;
        for (std::size_t row = 0; row < rows_.size(); row++, packed += row_terms_ * width)
            Operand<V>::pack_planes(packed, kernels.channels, across, [&](T* values) {
                for (long c = 0; c < kernels.channels; c++)
                    std::copy_n(planes + c * count * width + static_cast<long>(row) * across,
                                across, values + c * across);
            });
    }

    PaddedInput padded_;
    long planes_;  // of the image
    MicroPanels<V> panels_;
    PackedOperand<V> packed_;
    std::vector<long> rows_;     // of kernel offsets, in the padded input
    long row_terms_;             // of each of them
    std::vector<long> offsets_;  // of each term, in the padded input
};

}  // namespace handgrad
