// Convolution with 3 × 3 kernels and stride 1 by Winograd's minimal algorithms, in float32.
//
// The outputs are cut into M × M tiles; each takes an N × N tile of inputs, N = M + 2. After the
// transforms of winograd_matrices.h one convolution is N² independent products over the channels,
//     Z[α][f, x] = Σ_c U[α][f, c] V[α][c, x]        U = G g Gᵀ, V = Bᵀ d B, y = Aᵀ Z A
// for filters f and tiles x, with the micro-kernel of the tiled product: N² / M² products for each
// output and channel in place of 9. The input gradient is the same with the kernel turned round and
// filters and channels exchanged. The kernel gradient is
//     dU[α][c, f] = Σ_x V[α][c, x] dZ[α][x, f]      dZ = A dy Aᵀ, dg = Gᵀ dU G.
// Source: Lavin, Gray, Fast algorithms for convolutional neural networks (2016).
#pragma once

#include "core/conv/convolution.h"
#include "core/conv/winograd_matrices.h"

namespace handgrad {

// The tile that HANDGRAD_WINOGRAD asks for: 0 never, 2 or 4 wherever it can be, kAutomatic by cost.
enum WinogradChoice : int { kNever = 0, kTile2 = 2, kTile4 = 4, kAutomatic = -1 };

// M for this convolution in float32, or 0 where the sums over kernel offsets are to run instead.
int winograd_tile(const Convolution& conv);

// Planes of values as the tiles take them: value (i, j) of all tiles side by side.
template <int M, int Extent>
class TileValues {
  public:
    TileValues(long height, long width, long pad_h, long pad_w, long across)
        : height_(height), width_(width), pad_h_(pad_h), pad_w_(pad_w), across_(across) {}

    // The number of values that the tiles of so many rows need, and the lines that they lie in.
    long values(long rows) const {
        return M * Extent * size(rows) + lines_of(rows) * line_values() + M * kLanes<float>;
    }

    // Takes the values of these rows of tiles from one plane; zeros are around it. All lines are
    // padded before the first is parted, as a value that was just stored is not loaded at once.
    void gather(const float* plane, Range rows, float* target) const {
        const long some = size(rows.count()), lines = lines_of(rows.count());
        float* padded = target + M * Extent * some;
        for (long r = 0; r < lines; r++)
            pad_line(plane, rows.begin * M + r - pad_h_, padded + r * line_values());
        // Columns beyond M are those of the next tile: of a vector's last one they are not there.
        constexpr long step = kLanes<float> - (Extent > M ? 1 : 0);
        for (long r = 0; r < lines; r++) {
            float* place = target + r % M * Extent * some + r / M * across_;
            for (long x = 0; x < across_; x += step) {
                Vec<float> parts[M];
                part_columns(padded + r * line_values() + x * M, across_ + 1 - x, parts);
                // The rest of a vector is written too: the next row, or nobody, comes to lie there.
                for (int j = 0; j < Extent; j++)
                    store(place + j * some + x, j < M ? parts[j] : next_lane(parts[j % M]));
            }
        }
    }

    // Value (i, j) of tile x of the rows that were gathered.
    const float* at(const float* values, long rows, int i, int j) const {
        return values + (i % M * Extent + j) * size(rows) + i / M * across_;
    }

  private:
    // The extent of value (i, j) of a plane, for i < M: M is the distance of two rows of tiles.
    long size(long rows) const { return (rows + 1) * across_ + kLanes<float>; }
    static long lines_of(long rows) { return rows * M + Extent - M; }
    long line_values() const { return M * (across_ + 1); }

    // Part j has every M-th value of a line from the j-th on, `count` or more of them; a lane
    // beyond those has any value.
    static void part_columns(const float* line, long count, Vec<float> (&parts)[M]) {
        constexpr long n = kLanes<float>;
        const auto pair = [&](long i) { return load_interleaved(line + 2 * i * n, n); };
        auto [even, odd] = pair(0);
        if constexpr (M == 4) {
            // Even and odd values are parted twice.
            constexpr auto lanes = std::make_index_sequence<n>{};
            const auto [more_even, more_odd] = 2 * count > n ? pair(1) : std::pair{even, odd};
            parts[0] = detail::deinterleave<0, float>(even, more_even, lanes);
            parts[1] = detail::deinterleave<0, float>(odd, more_odd, lanes);
            parts[2] = detail::deinterleave<1, float>(even, more_even, lanes);
            parts[3] = detail::deinterleave<1, float>(odd, more_odd, lanes);
        } else {
            parts[0] = even;
            parts[1] = odd;
        }
    }
    static Vec<float> next_lane(Vec<float> v) {
        return detail::rotate<1>(v, std::make_index_sequence<kLanes<float>>{});
    }

    void pad_line(const float* plane, long y, float* line) const {
        const long all = line_values(), left = std::min(pad_w_, all);
        const long count = y < 0 || y >= height_ ? 0 : std::clamp(all - left, 0L, width_);
        std::fill_n(line, left, 0.0f);
        if (count > 0) copy_values(line + left, plane + y * width_, count);
        std::fill(line + left + count, line + all, 0.0f);
    }

    long height_, width_, pad_h_, pad_w_, across_;
};

// The values of one lane's row of positions, as epilogues of convolutions take them.
struct RowOfLane {
    const float* values;
    long positions;

    template <class Visit>
    void for_each_lane(const Visit& visit) const {
        for (long p = 0; p < positions; p += kLanes<float>) {
            const long count = std::min<long>(kLanes<float>, positions - p);
            visit(0, p, count, masked_load(values + p, count));
        }
    }
};

// The tiles of a convolution, and the rows of them that are transformed at a time: their values
// should stay in the second-level cache.
template <int M>
struct WinogradTiles {
    static constexpr int kInputs = Winograd<M>::kInputs, kProducts = kInputs * kInputs;
    long down, across, rows;

    WinogradTiles(long out_h, long out_w, long channels)
        : down((out_h + M - 1) / M), across((out_w + M - 1) / M) {
        const long bytes = kProducts * channels * across * static_cast<long>(sizeof(float));
        const long most = std::max(nc_bytes() / std::max(bytes, 1L), 1L);
        const long bands = std::max((down + most - 1) / most, 1L);
        rows = std::max((down + bands - 1) / bands, 1L);
    }

    // body(rows of tiles) for the rows of outputs, of which only the last may end within a tile.
    template <class Body>
    void for_each_band(Range outputs, const Body& body) const {
        const long end = (outputs.end + M - 1) / M;
        for (long first = outputs.begin / M; first < end; first += rows)
            body(Range{first, std::min(first + rows, end)});
    }
};

// The transform of all tiles x of one plane, kLanes of them at a time: visit(x, values).
template <int M, const auto& matrix, int Extent, class Visit>
void transform_tiles(const TileValues<M, Extent>& tiles, const float* values, long rows, long count,
                     const Visit& visit) {
    constexpr int out = static_cast<int>(matrix.size());
    for (long x = 0; x < count; x += kLanes<float>) {
        Vec<float> in[Extent * Extent], result[out * out];
        for (int i = 0; i < Extent; i++)
            for (int j = 0; j < Extent; j++)
                in[i * Extent + j] = load(tiles.at(values, rows, i, j) + x);
        multiply_both_sides<matrix>(in, result);
        visit(x, result);
    }
}

// The kernels of a convolution with so many lanes (filters, or channels where it is turned round).
struct WinogradKernels {
    const float* data;
    long groups, lanes, channels, lane_stride, channel_stride, group_stride;
    bool turned;
};

// Sums over kernel offsets and channels for one image and group after another.
template <int M>
class WinogradSum {
    using W = Winograd<M>;
    using Tiles = WinogradTiles<M>;
    static constexpr int kInputs = W::kInputs, kProducts = Tiles::kProducts;
    static constexpr long kSumsOfTile = kMR * kNR<float>;

  public:
    WinogradSum(long height, long width, long pad_h, long pad_w, long out_h, long out_w,
                const WinogradKernels& kernels)
        : height_(height),
          width_(width),
          out_w_(out_w),
          channels_(kernels.channels),
          tiles_(out_h, out_w, kernels.channels),
          values_(height, width, pad_h, pad_w, tiles_.across),
          lanes_(kernels.lanes),
          packed_(kernels.groups * kProducts * kernels.channels * kernels.lanes) {
        parallel_for(kernels.groups * lanes_.count, 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++) pack(kernels, i / lanes_.count, i % lanes_.count);
        });
    }

    // epilogue(row of outputs, lane, sums) for these rows, of which all but the last end with a
    // tile.
    template <class Epilogue>
    void run(const float* image, long group, Range outputs, const Epilogue& epilogue) const {
        const float* kernel = packed_.data() + group * kProducts * channels_ * lanes_.rows;
        tiles_.for_each_band(outputs, [&](Range rows) {
            const long count = rows.count() * tiles_.across;
            const ColumnPanels<float> panels(count);
            const float* v = transformed_input(image, rows, panels);
            const long pitch = panels.count * kNR<float>;
            float* sums = thread_workspace<float>(
                WorkspaceSlot::kSums,
                kProducts * kSumsOfTile + kMR * M * M * pitch + M * tiles_.across);
            float* y = sums + kProducts * kSumsOfTile;
            float* line = y + kMR * M * M * pitch;
            for (long t = 0; t < lanes_.count; t++) {
                breathe();
                const int lanes = lanes_.rows_of(t);
                const float* u = kernel + kProducts * channels_ * lanes_.at(t);
                for (long q = 0; q < panels.count; q++) {
                    const int width = panels.width(q);
                    const float* panel = v + q * kProducts * product_step(kNR<float>);
                    for (int a = 0; a < kProducts; a++)
                        micro_kernel(lanes, width, channels_, u + a * channels_ * lanes,
                                     panel + a * product_step(width), sums + a * kSumsOfTile,
                                     false);
                    transform_sums(lanes, width, sums, y + panels.at(q), pitch);
                }
                for (int l = 0; l < lanes; l++)
                    write(y + l * M * M * pitch, pitch, rows, outputs, lanes_.at(t) + l, line,
                          epilogue);
            }
        });
    }

  private:
    // U of one tile of lanes: for each product and channel the lanes side by side.
    void pack(const WinogradKernels& kernels, long group, long t) {
        const int lanes = lanes_.rows_of(t);
        const float* source =
            kernels.data + group * kernels.group_stride + lanes_.at(t) * kernels.lane_stride;
        float* target =
            packed_.data() + kProducts * channels_ * (group * lanes_.rows + lanes_.at(t));
        for (long c = 0; c < channels_; c++)
            for (int l = 0; l < lanes; l += kLanes<float>) {
                const int have = std::min(kLanes<float>, lanes - l);
                Vec<float> g[9], u[kProducts];
                for (int i = 0; i < 9; i++)
                    g[kernels.turned ? 8 - i : i] = load_strided(
                        source + l * kernels.lane_stride + c * kernels.channel_stride + i,
                        kernels.lane_stride, have);
                multiply_both_sides<W::kG>(g, u);
                for (int a = 0; a < kProducts; a++)
                    masked_store(target + (a * channels_ + c) * lanes + l, u[a], have);
            }
    }

    // The distance of two products in V, no power of two: a tile's values are stored to all.
    long product_step(int width) const { return channels_ * width + kLanes<float>; }

    // V in micro-panels: for each panel of tiles and each product the channels in turn.
    const float* transformed_input(const float* image, Range rows,
                                   const ColumnPanels<float>& panels) const {
        const long size = kProducts * product_step(kNR<float>);
        float* v = thread_workspace<float>(WorkspaceSlot::kPanelB, panels.count * size);
        float* gathered =
            thread_workspace<float>(WorkspaceSlot::kImage, values_.values(rows.count()));
        for (long c = 0; c < channels_; c++) {
            if (c % 16 == 0) breathe();
            values_.gather(image + c * height_ * width_, rows, gathered);
            transform_tiles<M, W::kBt>(values_, gathered, rows.count(), panels.columns,
                                       [&](long x, const Vec<float>* values) {
                                           const long q = x / kNR<float>;
                                           const int width = panels.width(q);
                                           float* target =
                                               v + q * size + c * width + x % kNR<float>;
                                           for (int a = 0; a < kProducts; a++)
                                               store(target + a * product_step(width), values[a]);
                                       });
        }
        return v;
    }

    // y = Aᵀ Z A: output (i, j) of the tiles of a panel side by side.
    static void transform_sums(int lanes, int width, const float* sums, float* y, long pitch) {
        for (int l = 0; l < lanes; l++)
            for (int x = 0; x < width; x += kLanes<float>) {
                Vec<float> z[kProducts], tile[M * M];
                for (int a = 0; a < kProducts; a++)
                    z[a] = load(sums + a * kSumsOfTile + l * width + x);
                multiply_both_sides<W::kAt>(z, tile);
                for (int i = 0; i < M * M; i++) store(y + (l * M * M + i) * pitch + x, tile[i]);
            }
    }

    // The rows of outputs of one lane, whose columns lie apart in M places.
    template <class Epilogue>
    void write(const float* y, long pitch, Range rows, Range outputs, long lane, float* line,
               const Epilogue& epilogue) const {
        for (long i = 0; i < rows.count() * M; i++) {
            const long j = rows.begin * M + i;
            if (j >= outputs.end) return;
            const float* from = y + i % M * M * pitch + i / M * tiles_.across;
            for (long x = 0; x < tiles_.across; x += kLanes<float>)
                interleave(from + x, pitch, std::min<long>(kLanes<float>, tiles_.across - x),
                           line + x * M);
            epilogue(j, lane, RowOfLane{line, out_w_});
        }
    }

    // The columns of so many tiles, kLanes at most, in turn.
    static void interleave(const float* from, long pitch, long count, float* line) {
        constexpr int n = kLanes<float>;
        constexpr auto lanes = std::make_index_sequence<n>{};
        const auto column = [&](int j) { return masked_load(from + j * pitch, count); };
        if constexpr (M == 2) {
            store_interleaved(line, column(0), column(1), count);
        } else {
            const Vec<float> a = column(0), b = column(1), c = column(2), d = column(3);
            const long first = std::min<long>(count, n / 2);
            store_interleaved(line, detail::zip_low<float>(a, c, lanes),
                              detail::zip_low<float>(b, d, lanes), 2 * first);
            if (count > first)
                store_interleaved(line + 2 * n, detail::zip_high<float>(a, c, lanes),
                                  detail::zip_high<float>(b, d, lanes), 2 * (count - first));
        }
    }

    long height_, width_, out_w_, channels_;
    Tiles tiles_;
    TileValues<M, kInputs> values_;
    RowTiles lanes_;
    Workspace<float> packed_;
};

template <int M>
WinogradSum<M> winograd_forward(const Convolution& conv, const float* kernel) {
    return {conv.height,
            conv.width,
            conv.pad_h,
            conv.pad_w,
            conv.out_h,
            conv.out_w,
            {kernel, conv.groups, conv.group_filters(), conv.group_channels(), conv.patch_size(), 9,
             conv.kernel_values(), false}};
}

template <int M>
class WinogradInputGradient {
  public:
    WinogradInputGradient(const Convolution& conv, const float* kernel)
        : rows_(conv.height),
          sum_(conv.out_h, conv.out_w, 2 - conv.pad_h, 2 - conv.pad_w, conv.height, conv.width,
               {kernel, conv.groups, conv.group_channels(), conv.group_filters(), 9,
                conv.patch_size(), conv.kernel_values(), true}) {}

    // Writes the gradient of one image and group.
    void run(const float* dz, long group, const StoreLanes<float>& write) const {
        sum_.run(dz, group, {0, rows_},
                 [&](long j, long lane, const auto& row) { write(j, 0, 1, lane, row); });
    }

  private:
    long rows_;
    WinogradSum<M> sum_;
};

// dU for one image and group after another, kept as tiles of MR channels × NR filters.
template <int M>
class WinogradKernelGradient {
    using W = Winograd<M>;
    using Tiles = WinogradTiles<M>;
    static constexpr int kInputs = W::kInputs, kProducts = Tiles::kProducts;
    static constexpr long kSumsOfTile = kMR * kNR<float>;

  public:
    explicit WinogradKernelGradient(const Convolution& conv)
        : conv_(conv),
          tiles_(conv.out_h, conv.out_w, conv.group_channels() + conv.group_filters()),
          inputs_(conv.height, conv.width, conv.pad_h, conv.pad_w, tiles_.across),
          outputs_(conv.out_h, conv.out_w, 0, 0, tiles_.across),
          channels_(conv.group_channels()),
          filters_(conv.group_filters()) {}

    // The number of sums of one group.
    long values() const { return filters_.count * channels_.count * kProducts * kSumsOfTile; }

    // sums += dU of one image and group.
    void add(const float* image, const float* dz, float* sums) const {
        tiles_.for_each_band({0, conv_.out_h}, [&](Range rows) {
            const long count = rows.count() * tiles_.across;
            // Rows of V are read unpacked, and should not lie a power of two apart.
            const long pitch = (count / kLanes<float> | 1) * kLanes<float> + 2 * kLanes<float>;
            const float* v = transformed_input(image, rows, count, pitch);
            for (long q = 0; q < filters_.count; q++) {
                const int width = filters_.width(q);
                const float* panel = transformed_output(dz, rows, count, pitch, q);
                for (long t = 0; t < channels_.count; t++) {
                    breathe();
                    float* tile = sums + (q * channels_.count + t) * kProducts * kSumsOfTile;
                    for (int a = 0; a < kProducts; a++)
                        micro_kernel<kAnyPitch>(
                            channels_.rows_of(t), width, count,
                            v + a * product_step(pitch) + channels_.at(t) * pitch,
                            panel + a * count * width, tile + a * kSumsOfTile, true, pitch);
                }
            }
        });
    }

    // dg = Gᵀ dU G for all filters and channels of all groups, into the kernel's layout.
    void write(const float* sums, float* dkernel) const {
        const long tiles = filters_.count * channels_.count;
        parallel_for(conv_.groups * tiles, 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long q = i % tiles / channels_.count, t = i % channels_.count;
                const int width = filters_.width(q), lanes = filters_.lanes(q);
                float* group = dkernel + i / tiles * conv_.kernel_values();
                for (int c = 0; c < channels_.rows_of(t); c++)
                    for (int l = 0; l < lanes; l += kLanes<float>) {
                        Vec<float> du[kProducts], dg[9];
                        for (int a = 0; a < kProducts; a++)
                            du[a] = load(sums + (i * kProducts + a) * kSumsOfTile + c * width + l);
                        multiply_both_sides<W::kGt>(du, dg);
                        float* target = group + (filters_.at(q) + l) * conv_.patch_size() +
                                        (channels_.at(t) + c) * 9;
                        for (int k = 0; k < 9; k++)
                            store_strided(target + k, dg[k], conv_.patch_size(),
                                          std::min(kLanes<float>, lanes - l));
                    }
            }
        });
    }

  private:
    long product_step(long pitch) const { return channels_.rows * pitch + kLanes<float>; }

    // V, for each product and channel the tiles side by side.
    const float* transformed_input(const float* image, Range rows, long count, long pitch) const {
        float* v = thread_workspace<float>(WorkspaceSlot::kPanelA, kProducts * product_step(pitch));
        float* gathered =
            thread_workspace<float>(WorkspaceSlot::kImage, inputs_.values(rows.count()));
        for (long c = 0; c < channels_.rows; c++) {
            if (c % 16 == 0) breathe();
            inputs_.gather(image + c * conv_.height * conv_.width, rows, gathered);
            transform_tiles<M, W::kBt>(
                inputs_, gathered, rows.count(), count, [&](long x, const Vec<float>* values) {
                    for (int a = 0; a < kProducts; a++)
                        store(v + a * product_step(pitch) + c * pitch + x, values[a]);
                });
        }
        return v;
    }

    // dZ of one panel of filters: for each product and tile the filters side by side.
    const float* transformed_output(const float* dz, Range rows, long count, long pitch,
                                    long q) const {
        const int width = filters_.width(q), lanes = filters_.lanes(q);
        float* panel = thread_workspace<float>(WorkspaceSlot::kPanelB, kProducts * count * width);
        const long square = kLanes<float> * pitch;
        float* by_filter = thread_workspace<float>(
            WorkspaceSlot::kSums, kProducts * square + outputs_.values(rows.count()));
        float* gathered = by_filter + kProducts * square;
        for (int l = 0; l < width; l += kLanes<float>) {
            breathe();
            const int have = std::clamp(lanes - l, 0, kLanes<float>);
            for (int f = 0; f < have; f++) {
                outputs_.gather(dz + (filters_.at(q) + l + f) * conv_.positions(), rows, gathered);
                transform_tiles<M, W::kA>(
                    outputs_, gathered, rows.count(), count, [&](long x, const Vec<float>* values) {
                        for (int a = 0; a < kProducts; a++)
                            store(by_filter + a * square + f * pitch + x, values[a]);
                    });
            }
            for (int a = 0; a < kProducts; a++)
                for (long x = 0; x < count; x += kLanes<float>)
                    pack_transposed_square(
                        panel + (a * count + x) * width + l, width, kLanes<float>,
                        static_cast<int>(std::min<long>(kLanes<float>, count - x)), [&](int f) {
                            return f < have ? by_filter + a * square + f * pitch + x : nullptr;
                        });
        }
        return panel;
    }

    Convolution conv_;
    Tiles tiles_;
    TileValues<M, kInputs> inputs_;
    TileValues<M, M> outputs_;
    RowTiles channels_;
    ColumnPanels<float> filters_;
};

template <int M>
void write_kernel_gradient(const Convolution&, const WinogradKernelGradient<M>& gradient,
                           const float* sums, float* dkernel) {
    gradient.write(sums, dkernel);
}

}  // namespace handgrad
