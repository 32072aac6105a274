// Convolution as the tiled product. What changes is where the register tile finds its operands.
//
// With V the image, K the kernel and one "tap" t = (channel, m, n) per value of a filter, at output
// position p = (j, k) (Yamanishi, equations 6 to 9):
//   forward          Z[p, f]  = Σ_t V[t at p] K[t, f]
//   input gradient   dV[q, c] = Σ_t dZ[t at q] K[t, c]     the same, with dZ as the image
//   kernel gradient  dK[t, f] = Σ_p V[t at p] dZ[p, f]
// V is the left operand each time, and a left operand is read one value at a time: it needs no
// packing, only zeros around the image. The right operands, kernels and dZ, are small and are
// packed as in matmul.h. In the input gradient a stride s means that only every s-th place of dV
// meets a given tap; such places form s · s convolutions of stride 1, each with taps of its own.
//
// V below is the type of what panels hold: numbers, or pairs of them rounded to bfloat16. It
// decides how the image lies (frame.h) and which register tile runs (convolution_tiles.h).
#pragma once

#include <vector>

#include "core/convolution_tiles.h"
#include "core/frame.h"
#include "core/memory.h"

namespace handgrad {

struct Convolution {
    long batch, channels, height, width;
    long filters, kernel_h, kernel_w;
    long stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
    long out_h, out_w;

    long group_channels() const { return channels / groups; }
    long group_filters() const { return filters / groups; }
    long kernel_size() const { return kernel_h * kernel_w; }
    long taps() const { return group_channels() * kernel_size(); }
    long positions() const { return out_h * out_w; }
    long image_values() const { return group_channels() * height * width; }
    long output_values() const { return group_filters() * positions(); }
    long kernel_values() const { return group_filters() * taps(); }
};

// The sizes as the Python side lists them.
inline Convolution convolution_of(const std::vector<long>& s) {
    return {s[0], s[1], s[2],  s[3],  s[4],  s[5],  s[6],  s[7],
            s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]};
}

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

// The kernels of all groups, packed by all threads: pack(group, panel, values) writes the values of
// a panel, channel by channel, `taps` terms for each.
template <class V, class Pack>
void pack_kernels(const Panels<V>& panels, long groups, long channels, long taps, V* packed,
                  const Pack& pack) {
    parallel_for(groups * panels.count(), 1, [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long g = i / panels.count(), q = i % panels.count();
            Operand<V>::pack_planes(packed + g * panels.size() + panels.at(q), channels,
                                    taps * panels.width_of(q),
                                    [&](auto* values) { pack(g, q, values); });
        }
    });
}

// A sum of taps over a framed image at places (j, k), every lane of a kernel at once.
template <class V>
struct Gather {
    using T = typename SumOf<V>::type;

    Panels<V> panels;
    const V* kernel;      // packed: for each tap its value in every lane
    const long* offsets;  // of each tap, in the framed image
    long rows, columns;   // places
    long row_step;        // between rows of places, in the framed image

    // finish(j, first lane, lanes, values, width) with the values of a row of places, lanes side by
    // side.
    template <class Finish>
    void run(const V* image, const Finish& finish) const {
        const long pieces = std::max((columns + kTileRows - 1) / kTileRows, 1L);
        T* values = scratch<T>(Scratch::kSums, columns * kTileColumns<T>);
        for (long q = 0; q < panels.count(); q++)
            for (long j = 0; j < rows; j++) {
                const int width = panels.width_of(q);
                for (long piece = 0; piece < pieces; piece++) {
                    const long k = piece * columns / pieces;
                    const int places = static_cast<int>((piece + 1) * columns / pieces - k);
                    gather_tile(places, width, panels.terms, image + j * row_step + k, offsets,
                                kernel + panels.at(q), values + k * width);
                }
                finish(j, q * kTileColumns<T>, panels.lanes_of(q), values, width);
            }
    }
};

// The lanes of a row of places one by one: visit(lane, first place, places, their values).
template <class T, class Visit>
void for_each_lane(long places, int lanes, const T* values, int width, const Visit& visit) {
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

// Writes a row of places to an image whose channels are the lanes: places x, x + step, ... of row
// y.
template <class T>
struct WriteLanes {
    T* image;
    long height, width;
    const T* bias;  // of each channel, or null

    void operator()(long y, long x, long step, long places, long lane, int lanes, const T* values,
                    int values_width) const {
        for_each_lane(places, lanes, values, values_width,
                      [&](int l, long p, long count, Vec<T> v) {
                          T* target = image + ((lane + l) * height + y) * width + x + p * step;
                          if (bias != nullptr) v += bias[lane + l];
                          store_strided(target, v, step, count);
                      });
    }
};

// The forward pass of a convolution, ready for one image after another.
template <class V>
class Forward {
  public:
    using T = typename SumOf<V>::type;

    Forward(const Convolution& conv, const T* kernel)
        : conv_(conv),
          frame_{conv.group_channels(),
                 conv.height,
                 conv.width,
                 conv.pad_h,
                 conv.pad_w,
                 (conv.out_h - 1) * conv.stride_h + (conv.kernel_h - 1) * conv.dilation_h + 1,
                 (conv.out_w - 1) * conv.stride_w + (conv.kernel_w - 1) * conv.dilation_w + 1,
                 conv.stride_w},
          panels_{conv.group_filters(),
                  Operand<V>::planes(conv.group_channels()) * conv.kernel_size()},
          sums_{conv.group_filters(), conv.taps()},
          packed_(kernel == nullptr ? 0 : conv.groups * panels_.size()) {
        if (kernel != nullptr)
            pack_kernels(panels_, conv.groups, conv.group_channels(), conv.kernel_size(),
                         packed_.data(), [&](long g, long q, T* values) {
                             const StridedPack<T> pack{kernel + g * conv.kernel_values(),
                                                       conv.taps(), 1};
                             pack(values, panels_.width_of(q), q * panels_.kWidth,
                                  panels_.lanes_of(q), 0, conv.taps());
                         });
        for (long c = 0; c < conv.group_channels(); c++)
            for (long m = 0; m < conv.kernel_h; m++)
                for (long n = 0; n < conv.kernel_w; n++)
                    offsets_.push_back(c * frame_.plane() + m * conv.dilation_h * frame_.pitch() +
                                       frame_.at(n * conv.dilation_w));
    }

    template <class Finish>
    void run(const T* image, long group, const Finish& finish) const {
        const Gather<V> gather{panels_,         packed_.data() + group * panels_.size(),
                               offsets_.data(), conv_.out_h,
                               conv_.out_w,     conv_.stride_h * frame_.pitch()};
        gather.run(Operand<V>::for_taps(frame_, image), finish);
    }

    // dkernel, as tiles of taps × filters, += patchesᵀ · dz for one image and group.
    void add_kernel_gradient(const T* image, const T* dz, T* dkernel) const {
        const auto* values = Operand<V>::for_places(frame_, image);
        const Places places{conv_.out_h, conv_.out_w, conv_.stride_h * frame_.pitch()};
        const long tiles = (conv_.taps() + kTileRows - 1) / kTileRows;
        const long most = (conv_.taps() + tiles - 1) / tiles;
        V* packed = scratch<V>(Scratch::kPanelB, conv_.positions() * sums_.kWidth);
        for (long q = 0; q < sums_.count(); q++) {
            const int width = sums_.width_of(q);
            Operand<V>::pack_places(packed, places, width, {dz, conv_.positions(), 1},
                                    q * sums_.kWidth, sums_.lanes_of(q));
            for (long t = 0; t < conv_.taps(); t += most)
                correlate_tile(static_cast<int>(std::min(most, conv_.taps() - t)), width, places,
                               values, offsets_.data() + t, packed,
                               dkernel + sums_.at(q) + t * width);
        }
    }
    long gradient_values() const { return sums_.size(); }
    // Where add_kernel_gradient keeps the gradient of this tap of this filter.
    long gradient_at(long tap, long filter) const {
        const long q = filter / sums_.kWidth;
        return sums_.at(q) + tap * sums_.width_of(q) + filter % sums_.kWidth;
    }

  private:
    Convolution conv_;
    Frame frame_;
    Panels<V> panels_;
    Panels<T> sums_;  // of the kernel's gradient
    Temporary<V> packed_;
    std::vector<long> offsets_;
};

// The input gradient of a convolution, ready for one dz after another.
template <class V>
class InputGradient {
  public:
    using T = typename SumOf<V>::type;

    InputGradient(const Convolution& conv, const T* kernel)
        : conv_(conv), packed_(conv.groups * packed_size(conv)) {
        // Of dz the places up to `low` before and `high` after are met.
        const Reach down = reach(conv.kernel_h, conv.stride_h, conv.pad_h, conv.dilation_h,
                                 conv.height, conv.out_h);
        const Reach across = reach(conv.kernel_w, conv.stride_w, conv.pad_w, conv.dilation_w,
                                   conv.width, conv.out_w);
        frame_ = {conv.group_filters(),
                  conv.out_h,
                  conv.out_w,
                  down.low,
                  across.low,
                  down.low + down.high,
                  across.low + across.high,
                  1};
        V* packed = packed_.data();
        for (long y = 0; y < conv.stride_h; y++)
            for (long x = 0; x < conv.stride_w; x++) {
                Part part{y, x, {}, {}, packed};
                add_taps(part, down.low, across.low);
                const Panels<V> panels = panels_of(part);
                pack_kernels(panels, conv.groups, conv.group_filters(),
                             static_cast<long>(part.taps.size()), packed,
                             [&](long g, long q, T* values) {
                                 pack(part, kernel + g * conv.kernel_values(), panels.width_of(q),
                                      q * panels.kWidth, panels.lanes_of(q), values);
                             });
                packed += conv.groups * panels.size();
                parts_.push_back(std::move(part));
            }
    }

    // The gradient of one image and group, written there; every place once.
    void run(const T* dz, long group, const WriteLanes<T>& write) const {
        const V* values = Operand<V>::for_taps(frame_, dz);
        for (const Part& part : parts_) {
            const long rows = (conv_.height - part.y + conv_.stride_h - 1) / conv_.stride_h;
            const long columns = (conv_.width - part.x + conv_.stride_w - 1) / conv_.stride_w;
            if (rows <= 0 || columns <= 0) continue;
            const Panels<V> panels = panels_of(part);
            const Gather<V> gather{panels,
                                   part.packed + group * panels.size(),
                                   part.offsets.data(),
                                   rows,
                                   columns,
                                   frame_.pitch()};
            gather.run(values, [&](long j, long lane, int lanes, const T* row, int width) {
                write(part.y + j * conv_.stride_h, part.x, conv_.stride_w, columns, lane, lanes,
                      row, width);
            });
        }
    }

  private:
    // The places y, y + stride_h, ... and x, x + stride_w, ... of the image, and the taps they
    // meet.
    struct Part {
        long y, x;
        std::vector<long> taps;     // index in one channel of one filter
        std::vector<long> offsets;  // of each plane and tap, in the framed dz
        V* packed;
    };
    struct Reach {
        long low, high;
    };

    // Of place y in the image, tap m meets output (y + pad - m · dilation) / stride where that is
    // whole; all in all outputs -low to high - 1.
    static Reach reach(long kernel, long stride, long pad, long dilation, long size, long out) {
        const long first = pad - (kernel - 1) * dilation, last = size - 1 + pad;
        const long low = first < 0 ? (-first + stride - 1) / stride : 0;
        return {low, std::max(last / stride + 1, out)};
    }

    static long packed_size(const Convolution& conv) {
        // A part has at most all taps, and all parts together have them once.
        const Panels<V> panels{conv.group_channels(),
                               Operand<V>::planes(conv.group_filters()) * conv.kernel_size()};
        return panels.size();
    }

    Panels<V> panels_of(const Part& part) const {
        return {conv_.group_channels(), static_cast<long>(part.offsets.size())};
    }

    void add_taps(Part& part, long low_h, long low_w) const {
        std::vector<long> offsets;
        for (long m = 0; m < conv_.kernel_h; m++)
            for (long n = 0; n < conv_.kernel_w; n++) {
                const long down = part.y + conv_.pad_h - m * conv_.dilation_h;
                const long across = part.x + conv_.pad_w - n * conv_.dilation_w;
                if (down % conv_.stride_h != 0 || across % conv_.stride_w != 0) continue;
                part.taps.push_back(m * conv_.kernel_w + n);
                offsets.push_back((down / conv_.stride_h + low_h) * frame_.pitch() +
                                  across / conv_.stride_w + low_w);
            }
        for (long f = 0; f < Operand<V>::planes(conv_.group_filters()); f++)
            for (const long offset : offsets) part.offsets.push_back(f * frame_.plane() + offset);
    }

    // The kernels of some channels as lanes, filter by filter. All taps lie side by side.
    void pack(const Part& part, const T* kernel, int width, long channel, int lanes,
              T* values) const {
        const long size = conv_.kernel_size(), taps = static_cast<long>(part.taps.size());
        for (long f = 0; f < conv_.group_filters(); f++, values += taps * width) {
            const T* filter = kernel + f * conv_.taps();
            if (taps == size)
                StridedPack<T>{filter, size, 1}(values, width, channel, lanes, 0, size);
            else
                for (long t = 0; t < taps; t++)
                    for (int l = 0; l < width; l++)
                        values[t * width + l] =
                            l < lanes ? filter[(channel + l) * size + part.taps[t]] : T(0);
        }
    }

    Convolution conv_;
    Temporary<V> packed_;
    Frame frame_;
    std::vector<Part> parts_;
};

// `values` sums over the batch, such as dweight and dbias: some images share a part, the parts are
// added in order. How many share is a function of the sizes alone, never of the threads.
template <class T>
class BatchSums {
  public:
    BatchSums(const Convolution& conv, long values)
        : items_(conv.batch * conv.groups),
          values_(values),
          share_(images_per_part(conv.batch, values) * conv.groups),
          parts_(std::max((items_ + share_ - 1) / share_, 1L)),
          sums_(parts_ * values) {}

    // body(item, sums) for every image and group, in order within a part; then the total.
    template <class Body>
    const T* run(const Body& body) const {
        parallel_for(parts_, 1, [&](long begin, long end) {
            for (long part = begin; part < end; part++) {
                T* sums = sums_.data() + part * values_;
                std::fill_n(sums, values_, T(0));
                const long last = std::min((part + 1) * share_, items_);
                for (long item = part * share_; item < last; item++) body(item, sums);
            }
        });
        T* total = sums_.data();
        parallel_for(values_, 4096, [&](long begin, long end) {
            for (long part = 1; part < parts_; part++)
                for (long i = begin; i < end; i++) total[i] += total[part * values_ + i];
        });
        return total;
    }

  private:
    static long images_per_part(long batch, long values) {
        constexpr long kMemory = 8 << 20;
        const long bytes = std::max(values, 1L) * static_cast<long>(sizeof(T));
        // A power of two, as the threads are: 11 parts took 6 turns of two threads.
        long parts = 16;
        while (parts > 2 && parts * bytes > kMemory) parts /= 2;
        return std::max((batch + parts - 1) / parts, 1L);
    }

    long items_, values_, share_, parts_;
    Temporary<T> sums_;
};

// dkernel (filters, taps) from the tiles that Forward::add_kernel_gradient summed for each group.
template <class V, class T>
void write_kernel_gradient(const Convolution& conv, const Forward<V>& forward, const T* sums,
                           T* dkernel) {
    const long taps = conv.taps(), filters = conv.group_filters();
    parallel_for(conv.filters, std::max(16384 / std::max(taps, 1L), 1L), [&](long begin, long end) {
        for (long f = begin; f < end; f++) {
            const T* group = sums + f / filters * forward.gradient_values();
            for (long t = 0; t < taps; t++)
                dkernel[f * taps + t] = group[forward.gradient_at(t, f % filters)];
        }
    });
}

}  // namespace handgrad
