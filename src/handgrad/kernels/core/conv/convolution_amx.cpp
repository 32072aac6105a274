#include "core/conv/convolution_amx.h"

#if defined(__AVX512F__)

namespace handgrad {
namespace {

inline __mmask16 lanes_between(long first, long last) {
    const auto below = [](long n) { return (1u << std::clamp(n, 0L, 16L)) - 1; };
    return static_cast<__mmask16>(below(last) & ~below(first));
}

// Columns x, x + step, ... of the rows of an image, the first `count` of them, at most 16; those
// outside of the image are 0.
class Columns {
  public:
    Columns(long x, long step, long width, long count) : x_(x), step_(step) {
        const auto inside = [&](long from) { return lanes_between(-from, width - from); };
        low_ = inside(x);
        high_ = inside(x + 15);
        wanted_ = lanes_between(0, count);
        if (step == 1) low_ &= wanted_;
        for (long i = 0; step > 2 && i < 16; i++)
            if (x + i * step < 0 || x + i * step >= width)
                wanted_ &= static_cast<__mmask16>(~(1u << i));
    }

    __m512 load(const float* row) const {
        const float* from = row + x_;
        if (step_ == 1) return _mm512_maskz_loadu_ps(low_, from);
        if (step_ == 2)
            return _mm512_maskz_mov_ps(
                wanted_, detail::every_second<float>(_mm512_maskz_loadu_ps(low_, from),
                                                     _mm512_maskz_loadu_ps(high_, from + 15),
                                                     std::make_index_sequence<16>{}));
        Vec<float> values{};
        for (long i = 0; i < 16; i++)
            if (wanted_ >> i & 1) values[i] = from[i * step_];
        return values;
    }

  private:
    long x_, step_;
    __mmask16 low_, high_, wanted_;
};

}  // namespace

__attribute__((target("avx512bf16"))) const Bf16x2* Operand<AmxBf16x2>::for_offsets(
    const PaddedInput& padded, const float* image) {
    const long channel_pairs = Operand<AmxBf16x2>::channel_pairs(padded.channels).padded();
    const long run = padded.run(), width = padded.padded_width();
    // A tile may read up to 15 positions beyond the last.
    Bf16x2* target =
        thread_workspace<Bf16x2>(WorkspaceSlot::kPanelA, padded.rows * channel_pairs * width + 16);
    for (long p = 0; p < channel_pairs; p++)
        for (long first = 0; first < padded.step; first++)
            for (long k = 0; k < run; k += 16) {
                const Columns columns(first + k * padded.step - padded.left, padded.step,
                                      padded.width, run - k);
                const __mmask16 fits = lanes_between(0, run - k);
                Bf16x2* at = target + p * width + first * run + k;
                for (long i = 0; i < padded.rows; i++, at += channel_pairs * width) {
                    const long y = i - padded.top;
                    const float* row = image + (2 * p * padded.height + y) * padded.width;
                    const bool inside = y >= 0 && y < padded.height;
                    __m512 even{}, odd{};
                    if (inside && 2 * p < padded.channels) even = columns.load(row);
                    if (inside && 2 * p + 1 < padded.channels)
                        odd = columns.load(row + padded.height * padded.width);
                    _mm512_mask_storeu_epi32(at, fits, round_to_bf16x2(even, odd));
                }
            }
    return target;
}

KernelOffsetSum<AmxBf16x2>::KernelOffsetSum(const PaddedInput& padded,
                                            const Kernels<float>& kernels,
                                            const std::vector<KernelOffset>& kernel_offsets)
    : channel_pairs_(Operand<AmxBf16x2>::channel_pairs(kernels.channels)),
      width_(padded.padded_width()),
      row_pitch_(channel_pairs_.padded() * width_),
      lanes_(kernels.lanes),
      panels_((lanes_ + kAmxSide - 1) / kAmxSide),
      offsets_([&] {
          std::vector<long> offsets;
          for (long tile = 0; tile < channel_pairs_.tiles; tile++)
              for (const KernelOffset& kernel_offset : kernel_offsets)
                  offsets.push_back(kernel_offset.row * row_pitch_ +
                                    tile * channel_pairs_.rows * width_ +
                                    padded.at(kernel_offset.column));
          return offsets;
      }()),
      packed_(kernels.groups * panels_ * panel_size()) {
    parallel_for(kernels.groups * panels_, 1, [&](long begin, long end) {
        for (long i = begin; i < end; i++) pack(kernels, kernel_offsets, i / panels_, i % panels_);
    });
}

// A row of channel pairs for each lane, tile by tile.
void KernelOffsetSum<AmxBf16x2>::pack(const Kernels<float>& kernels,
                                      const std::vector<KernelOffset>& kernel_offsets, long group,
                                      long q) {
    const float* kernel = kernels.data + group * kernels.group_stride;
    Bf16x2* target = packed_.data() + (group * panels_ + q) * panel_size();
    for (long tile = 0; tile < channel_pairs_.tiles; tile++)
        for (const KernelOffset& kernel_offset : kernel_offsets) {
            const long channel = tile * 2 * channel_pairs_.rows;
            pack_square(Side::kLeft, target,
                        {kernel + kernel_offset.index, kernels.lane_stride, kernels.channel_stride},
                        q * kAmxSide,
                        static_cast<int>(std::min<long>(kAmxSide, lanes_ - q * kAmxSide)), channel,
                        std::min<long>(2 * channel_pairs_.rows, kernels.channels - channel));
            target += kSquareElements;
        }
}

namespace {

// Squares of up to 2 × 2 tiles of sums. `rows` is the number of rows of a tile.
template <int Down, int Across>
__attribute__((target("amx-tile,amx-bf16"))) void gather_square(
    int rows, long terms, const Bf16x2* kernel, const Bf16x2* first, const Bf16x2* second,
    const long* offsets, long width, float* values, long lane_step) {
    const long right_stride = width * static_cast<long>(sizeof(Bf16x2));
    const long sums_stride = lane_step * static_cast<long>(sizeof(float));
    see_memory(kernel);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (long t = 0; t < terms; t++, kernel += kAmxSide * kAmxElements) {
        _tile_loadd(4, kernel, 64);
        _tile_loadd(6, first + offsets[t], right_stride);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (Across == 2) {
            _tile_loadd(7, second + offsets[t], right_stride);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (Down == 2) {
            _tile_loadd(5, kernel + rows * kAmxElements, 64);
            _tile_dpbf16ps(2, 5, 6);
            if constexpr (Across == 2) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, values, sums_stride);
    if constexpr (Across == 2) _tile_stored(1, values + 16, sums_stride);
    if constexpr (Down == 2) _tile_stored(2, values + rows * lane_step, sums_stride);
    if constexpr (Down == 2 && Across == 2)
        _tile_stored(3, values + rows * lane_step + 16, sums_stride);
}

// sums[row][lane] += left · right over `tiles` of 32 terms and, where `rest` is given, one more of
// the left operand.
template <int Down, int Across>
__attribute__((target("amx-tile,amx-bf16"))) void correlate_square(int rows, long tiles,
                                                                   const Bf16* left, long plane,
                                                                   const Bf16* rest,
                                                                   const Bf16x2* right,
                                                                   float* sums) {
    constexpr int stride = kAmxSide * sizeof(float);
    see_memory(sums);
    _tile_loadd(0, sums, stride);
    if constexpr (Across == 2) _tile_loadd(1, sums + 16, stride);
    if constexpr (Down == 2) _tile_loadd(2, sums + rows * kAmxSide, stride);
    if constexpr (Down == 2 && Across == 2) _tile_loadd(3, sums + rows * kAmxSide + 16, stride);
    for (long t = 0; t <= tiles; t++, left += kAmxK, right += kAmxElements * kAmxSide) {
        if (t == tiles) {
            if (rest == nullptr) break;
            left = rest;
            plane = kAmxK;
        }
        const long left_stride = plane * static_cast<long>(sizeof(Bf16));
        _tile_loadd(4, left, left_stride);
        _tile_loadd(6, right, stride);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (Across == 2) {
            _tile_loadd(7, right + 16, stride);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (Down == 2) {
            _tile_loadd(5, left + rows * plane, left_stride);
            _tile_dpbf16ps(2, 5, 6);
            if constexpr (Across == 2) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, stride);
    if constexpr (Across == 2) _tile_stored(1, sums + 16, stride);
    if constexpr (Down == 2) _tile_stored(2, sums + rows * kAmxSide, stride);
    if constexpr (Down == 2 && Across == 2) _tile_stored(3, sums + rows * kAmxSide + 16, stride);
}

// use.operator()<Down, Across>() for the values at run time.
template <class Use>
void with_square(bool two_down, bool two_across, const Use& use) {
    if (two_down)
        two_across ? use.template operator()<2, 2>() : use.template operator()<2, 1>();
    else
        two_across ? use.template operator()<1, 2>() : use.template operator()<1, 1>();
}

}  // namespace

void KernelOffsetSum<AmxBf16x2>::gather(int lanes, const Bf16x2* kernel, const Bf16x2* first,
                                        const Bf16x2* second, float* values, long lane_step) const {
    with_square(lanes > 16, second != nullptr, [&]<int Down, int Across>() {
        gather_square<Down, Across>(TileRows(lanes).rows, terms(), kernel, first, second,
                                    offsets_.data(), width_, values, lane_step);
    });
}

KernelGradient<AmxBf16x2>::KernelGradient(const Convolution& conv)
    : conv_(conv),
      padded_(padded_input_of(conv)),
      channels_(conv.group_channels()),
      panels_((conv.group_filters() + kAmxSide - 1) / kAmxSide),
      columns_((conv.out_w + 1) / 2 * 2),
      run_((padded_.rows + conv.stride_h - 1) / conv.stride_h) {}

__attribute__((target("avx512bf16"))) const Bf16* KernelGradient<AmxBf16x2>::columns_of(
    const float* image, long n) const {
    const long s = conv_.stride_h, plane = s * run_ * columns_;
    Bf16* target = thread_workspace<Bf16>(WorkspaceSlot::kPanelA, channels_.padded() * plane);
    for (long c = 0; c < conv_.group_channels(); c++, target += plane)
        for (long k = 0; k < columns_; k += kAmxK) {
            const auto columns = [&](long from) {
                return Columns(from * conv_.stride_w + n * conv_.dilation_w - conv_.pad_w,
                               conv_.stride_w, conv_.width, conv_.out_w - from);
            };
            const Columns low = columns(k), high = columns(k + 16);
            const long fits = std::min(kAmxK, columns_ - k);
            const auto mask = static_cast<__mmask32>((std::uint64_t{1} << fits) - 1);
            for (long first = 0; first < s; first++) {
                Bf16* at = target + first * run_ * columns_ + k;
                for (long i = first; i < padded_.rows; i += s, at += columns_) {
                    const long y = i - conv_.pad_h;
                    const float* row = image + (c * conv_.height + y) * conv_.width;
                    const bool inside = y >= 0 && y < conv_.height;
                    const auto rounded =
                        inside ? _mm512_cvtne2ps_pbh(high.load(row), low.load(row)) : __m512bh{};
                    _mm512_mask_storeu_epi16(at, mask, (__m512i)rounded);
                }
            }
        }
    return target - conv_.group_channels() * plane;
}

void KernelGradient<AmxBf16x2>::add(const float* image, const float* dz, float* sums) const {
    const long terms = conv_.out_h * columns_, tiles = terms / kAmxK, left = terms % kAmxK;
    const long panel = (tiles + (left > 0)) * kAmxElements * kAmxSide;
    Bf16x2* packed = thread_workspace<Bf16x2>(WorkspaceSlot::kPanelB, panels_ * panel);
    for (long q = 0; q < panels_; q++) {
        Bf16x2* target = packed + q * panel;
        Operand<Bf16x2>::pack_positions(
            target, {conv_.out_h, conv_.out_w, 0}, kAmxSide, {dz, conv_.positions(), 1},
            q * kAmxSide,
            static_cast<int>(std::min<long>(kAmxSide, conv_.group_filters() - q * kAmxSide)));
        std::fill(target + terms / 2 * kAmxSide, target + panel, Bf16x2{});
    }
    const int rows = channels_.rows;
    const long s = conv_.stride_h, plane = s * run_ * columns_;
    const AmxTiles registers(rows);
    for (long n = 0; n < conv_.kernel_w; n++) {
        const Bf16* columns = columns_of(image, n);
        for (long m = 0; m < conv_.kernel_h; m++) {
            breathe();
            const long row = m * conv_.dilation_h;
            for (long tile = 0; tile < channels_.tiles; tile += 2) {
                const Bf16* first =
                    columns + tile * rows * plane + (row % s * run_ + row / s) * columns_;
                const bool two = tile + 1 < channels_.tiles;
                alignas(64) Bf16 rest[kAmxSide * kAmxK];
                for (int r = 0; left > 0 && r < (two ? 2 : 1) * rows; r++) {
                    const auto mask = static_cast<__mmask32>((1u << left) - 1);
                    _mm512_store_si512(
                        rest + r * kAmxK,
                        _mm512_maskz_loadu_epi16(mask, first + r * plane + tiles * kAmxK));
                }
                for (long q = 0; q < panels_; q++)
                    with_square(
                        two, conv_.group_filters() - q * kAmxSide > 16,
                        [&]<int Down, int Across>() {
                            correlate_square<Down, Across>(
                                rows, tiles, first, plane, left > 0 ? rest : nullptr,
                                packed + q * panel,
                                sums + at(tile * rows, m * conv_.kernel_w + n, q * kAmxSide));
                        });
            }
        }
    }
}

}  // namespace handgrad

#endif
