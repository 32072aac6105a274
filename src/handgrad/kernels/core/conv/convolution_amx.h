// Convolutions on AMX (amx.h): the sums of kernel_offset_sum.h and kernel_gradient.h in its tiles.
//
// A tile of the left operand has a row of Bf16x2 for each of 16 rows; one of the right operand a
// row for each of 16 elements of k, 16 lanes in each. Rows may lie at any one distance, so that
// images are read where they lie:
//   sums over kernel offsets   Z[f, p]  = Σ_t K[f, t] V[t at p]
//                              The image is the right operand: the rows are pairs of channels at
//                              one kernel offset, the lanes 16 positions side by side.
//   sums over positions        dK[t, f] = Σ_p V[t at p] dZ[p, f]
//                              The image is the left operand: the rows are channels at one kernel
//                              offset, the terms positions side by side.
// Values that a tile reads beyond a row of positions or a last channel end in sums that are not
// used. A term that is none of the sum is never read but where it is 0: 0 times the NaN beside it
// would be NaN.
#pragma once

#include "core/conv/kernel_gradient.h"
#include "core/gemm/amx.h"

#if defined(__AVX512F__)

namespace handgrad {

// So many rows in tiles of at most 16, equal ones; a tile that is configured has one at least.
struct TileRows {
    long tiles;
    int rows;
    explicit TileRows(long all)
        : tiles((all + 15) / 16),
          rows(all == 0 ? 1 : static_cast<int>((all + tiles - 1) / tiles)) {}
    long padded() const { return tiles * rows; }
};

// The padded input as pairs of channels: row by row, in each of them pair by pair, in each of these
// the columns. Zeros make up pairs to fill the tiles.
template <>
struct Operand<AmxBf16x2> {
    static TileRows channel_pairs(long channels) { return TileRows((channels + 1) / 2); }
    static const Bf16x2* for_offsets(const PaddedInput& padded, const float* image);
};

// The sums of a row of positions, lane by lane.
struct SumsByLane {
    const float* values;
    int lanes;
    long lane_step, positions;

    template <class Visit>
    void for_each_lane(const Visit& visit) const {
        for (int l = 0; l < lanes; l++)
            for (long p = 0; p < positions; p += kLanes<float>)
                visit(l, p, std::min<long>(kLanes<float>, positions - p),
                      load(values + l * lane_step + p));
    }
};

template <>
class KernelOffsetSum<AmxBf16x2> {
  public:
    KernelOffsetSum(const PaddedInput& padded, const Kernels<float>& kernels,
                    const std::vector<KernelOffset>& kernel_offsets);

    // Tiles are taken two at a time, if need be from two rows of positions.
    template <class Epilogue>
    void run(const Bf16x2* image, long group, Range rows, long columns, long step, bool,
             const Epilogue& epilogue) const {
        const long pieces = (columns + 15) / 16, together = 1 + pieces % 2;
        const long lane_step = together * pieces * 16;
        float* values = thread_workspace<float>(WorkspaceSlot::kSums, kAmxSide * lane_step);
        for (long q = 0; q < panels_; q++) {
            const int lanes = static_cast<int>(std::min<long>(kAmxSide, lanes_ - q * kAmxSide));
            const Bf16x2* kernel = packed_.data() + (group * panels_ + q) * panel_size();
            const AmxTiles registers(TileRows(lanes).rows, channel_pairs_.rows);
            for (long j = rows.begin; j < rows.end; j += together) {
                breathe();
                const long some = std::min(together, rows.end - j), tiles = some * pieces;
                const auto position = [&](long t) {
                    return image + (j + t / pieces) * step * row_pitch_ + t % pieces * 16;
                };
                for (long t = 0; t < tiles; t += 2)
                    gather(lanes, kernel, position(t), t + 1 < tiles ? position(t + 1) : nullptr,
                           values + t * 16, lane_step);
                for (long r = 0; r < some; r++)
                    epilogue(j + r, q * kAmxSide,
                             SumsByLane{values + r * pieces * 16, lanes, lane_step, columns});
            }
        }
    }

  private:
    long terms() const { return static_cast<long>(offsets_.size()); }
    long panel_size() const { return terms() * kAmxSide * kAmxElements; }
    void pack(const Kernels<float>& kernels, const std::vector<KernelOffset>& kernel_offsets,
              long group, long q);
    // values[lane][position] of two tiles of positions, or of one.
    void gather(int lanes, const Bf16x2* kernel, const Bf16x2* first, const Bf16x2* second,
                float* values, long lane_step) const;

    TileRows channel_pairs_;
    long width_, row_pitch_;  // of the padded input: columns, elements of a row
    long lanes_, panels_;
    std::vector<long> offsets_;  // of each tile of terms, in the padded input
    Workspace<Bf16x2> packed_;
};

template <>
class KernelGradient<AmxBf16x2> {
  public:
    explicit KernelGradient(const Convolution& conv);

    long values() const { return panels_ * conv_.kernel_size() * channels_.padded() * kAmxSide; }
    long at(long channel, long kernel_offset, long filter) const {
        const long panel = filter / kAmxSide * conv_.kernel_size() + kernel_offset;
        return (panel * channels_.padded() + channel) * kAmxSide + filter % kAmxSide;
    }
    void add(const float* image, const float* dz, float* sums) const;

  private:
    // The columns that a column of kernel offsets reads, row after row as one long sum runs through
    // them: with a stride, rows of one kernel offset lie side by side. Even in number; the last may
    // be 0.
    const Bf16* columns_of(const float* image, long n) const;

    Convolution conv_;
    PaddedInput padded_;
    TileRows channels_;
    long panels_, columns_, run_;  // run_: rows side by side
};

}  // namespace handgrad

#endif
