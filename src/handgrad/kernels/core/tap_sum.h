// Sums over taps of a framed image: Z[p, l] = Σ_t V[t at p] K[t, l] at places p for every lane l.
//
// The image is the left operand, which is read one value at a time where it lies; the kernels are
// the right one, packed once for the whole batch into panels as in matmul.h.
#pragma once

#include "core/convolution_sizes.h"
#include "core/memory.h"

namespace handgrad {

// Right operands, packed: panels of kTileColumns lanes, or of half as many where that is enough.
template <class V>
struct Panels {
    static constexpr long kWidth = kTileColumns<V>;
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

// The sums of a row of places. for_each_lane calls visit(lane, first place, places, their sums), a
// vector of places at a time. Here the lanes of a place lie side by side.
template <class T>
struct LanesTogether {
    const T* values;
    int lanes, width;
    long places;

    template <class Visit>
    void for_each_lane(const Visit& visit) const {
        constexpr int n = kLanes<T>;
        for (long p = 0; p < places; p += n)
            for (int l = 0; l < lanes; l += n) {
                Vec<T> square[n];
#pragma GCC unroll 16
                for (int i = 0; i < n; i++)
                    square[i] = p + i < places ? load(values + (p + i) * width + l) : Vec<T>{};
                transpose<T>(square);
                for (int i = 0; i < std::min(n, lanes - l); i++)
                    visit(l + i, p, std::min<long>(n, places - p), square[i]);
            }
    }
};

// The sum over these taps and all channels, every lane of a kernel at once. V is what panels hold.
template <class V>
class TapSum {
  public:
    using T = typename SumOf<V>::type;

    TapSum(const Frame& frame, const Kernels<T>& kernels, const std::vector<Tap>& taps)
        : row_pitch_(frame.pitch()),
          panels_{kernels.lanes,
                  Operand<V>::planes(kernels.channels) * static_cast<long>(taps.size())},
          packed_(kernels.groups * panels_.size()) {
        for (long c = 0; c < Operand<V>::planes(kernels.channels); c++)
            for (const Tap& tap : taps)
                offsets_.push_back(c * frame.plane() + tap.row * frame.pitch() +
                                   frame.at(tap.column));
        parallel_for(kernels.groups * panels_.count(), 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++)
                pack(kernels, taps, i / panels_.count(), i % panels_.count());
        });
    }

    // At rows × columns places, `step` rows of the framed image apart: finish(row, first lane,
    // sums) with the sums of each row of places.
    template <class Finish>
    void run(const V* image, long group, long rows, long columns, long step,
             const Finish& finish) const {
        const V* kernel = packed_.data() + group * panels_.size();
        const long pieces = std::max((columns + kTileRows - 1) / kTileRows, 1L);
        T* values = scratch<T>(Scratch::kSums, columns * kTileColumns<T>);
        for (long q = 0; q < panels_.count(); q++)
            for (long j = 0; j < rows; j++) {
                const int width = panels_.width_of(q);
                for (long piece = 0; piece < pieces; piece++) {
                    const long k = piece * columns / pieces;
                    const int places = static_cast<int>((piece + 1) * columns / pieces - k);
                    gather_tile(places, width, panels_.terms, image + j * step * row_pitch_ + k,
                                offsets_.data(), kernel + panels_.at(q), values + k * width);
                }
                finish(j, q * kTileColumns<T>,
                       LanesTogether<T>{values, panels_.lanes_of(q), width, columns});
            }
    }

  private:
    // A panel, channel by channel the values of the taps.
    void pack(const Kernels<T>& kernels, const std::vector<Tap>& taps, long group, long q) {
        const long count = static_cast<long>(taps.size()), first = q * panels_.kWidth;
        const int width = panels_.width_of(q), lanes = panels_.lanes_of(q);
        const bool all = count == kernels.size;
        // Planes that follow each other are one long row.
        const long together = all && kernels.channel_stride == count ? kernels.channels : 1;
        Operand<V>::pack_planes(
            packed_.data() + group * panels_.size() + panels_.at(q), kernels.channels,
            count * width, [&](T* values) {
                for (long c = 0; c < kernels.channels; c += together) {
                    const T* plane =
                        kernels.data + group * kernels.group_stride + c * kernels.channel_stride;
                    if (all)
                        StridedPack<T>{plane, kernels.lane_stride, 1}(values, width, first, lanes,
                                                                      0, together * count);
                    else
                        for (long t = 0; t < count; t++)
                            for (int l = 0; l < width; l++)
                                values[t * width + l] =
                                    l < lanes
                                        ? plane[(first + l) * kernels.lane_stride + taps[t].index]
                                        : T(0);
                    values += together * count * width;
                }
            });
    }

    long row_pitch_;
    Panels<V> panels_;
    Temporary<V> packed_;
    std::vector<long> offsets_;  // of each plane and tap, in the framed image
};

}  // namespace handgrad
