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
#pragma once

#include <vector>

#include "core/matmul.h"
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

// An image of some channels with zeros around it: `top` rows before, `left` columns before, and as
// many after as make up `rows` and `columns`. What lies beyond these is cut off.
struct Frame {
    long channels, height, width, top, left, rows, columns;

    bool in_place() const { return top == 0 && left == 0 && rows <= height && columns <= width; }
    long pitch() const { return in_place() ? width : columns; }
    long plane() const { return in_place() ? height * width : rows * columns; }
};

// The framed image; the image itself where there is nothing to add.
template <class T>
const T* framed(const Frame& frame, const T* image) {
    if (frame.in_place()) return image;
    T* target = scratch<T>(Scratch::kImage, frame.channels * frame.plane());
    const long above = std::min(frame.top, frame.rows), left = std::min(frame.left, frame.columns);
    const long high = std::clamp(frame.rows - above, 0L, frame.height);
    const long wide = std::clamp(frame.columns - left, 0L, frame.width);
    for (long c = 0; c < frame.channels; c++, target += frame.plane()) {
        std::fill_n(target, above * frame.columns, T(0));
        T* row = target + above * frame.columns;
        for (long i = 0; i < high; i++, row += frame.columns) {
            const T* source = image + (c * frame.height + i) * frame.width;
            for (long k = 0; k < left; k++) row[k] = T(0);
            copy_values(row + left, source, wide);
            for (long k = left + wide; k < frame.columns; k++) row[k] = T(0);
        }
        std::fill_n(row, (frame.rows - above - high) * frame.columns, T(0));
    }
    return target - frame.channels * frame.plane();
}

// Right operands, packed: panels of kTileColumns lanes, or of half as many where that is enough.
template <class T>
struct Panels {
    long lanes, terms;

    long count() const { return (lanes + kTileColumns<T> - 1) / kTileColumns<T>; }
    long size() const { return count() * terms * kTileColumns<T>; }
    long at(long q) const { return q * terms * kTileColumns<T>; }
    int lanes_of(long q) const {
        return static_cast<int>(std::min<long>(kTileColumns<T>, lanes - q * kTileColumns<T>));
    }
    int width_of(long q) const { return lanes_of(q) <= kLanes<T> ? kLanes<T> : kTileColumns<T>; }

    void pack(T* packed, const StridedPack<T>& source) const {
        for (long q = 0; q < count(); q++)
            source(packed + at(q), width_of(q), q * kTileColumns<T>, lanes_of(q), 0, terms);
    }
};

// tile[i, lanes] = Σ_t image[offsets[t] + i · step] · panel[t, lanes].
template <class T, int Rows, int Vectors, bool kUnitStep>
void gather_tile(long terms, const T* image, const long* offsets, long step, const T* panel,
                 T* tile) {
    constexpr int n = kLanes<T>;
    Vec<T> sums[Rows][Vectors] = {};
    for (long t = 0; t < terms; t++, panel += Vectors * n) {
        const T* a = image + offsets[t];
        Vec<T> b[Vectors];
        for (int v = 0; v < Vectors; v++) b[v] = load(panel + v * n);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) {
            const Vec<T> value = splat(kUnitStep ? a[i] : a[i * step]);
            for (int v = 0; v < Vectors; v++) sums[i][v] += value * b[v];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(tile + (i * Vectors + v) * n, sums[i][v]);
}

// tile[i, lanes] += Σ over rows j and columns k of places[i][j · row_step + k · step] · panel[jk].
template <class T, int Rows, int Vectors, bool kUnitStep>
void correlate_tile(const T* image, const long* offsets, long rows, long columns, long row_step,
                    long step, const T* panel, T* tile) {
    constexpr int n = kLanes<T>;
    Vec<T> sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) sums[i][v] = load(tile + (i * Vectors + v) * n);
    for (long j = 0; j < rows; j++, image += row_step) {
        const T* places[Rows];
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++) places[i] = image + offsets[i];
        for (long k = 0; k < columns; k++, panel += Vectors * n) {
            Vec<T> b[Vectors];
            for (int v = 0; v < Vectors; v++) b[v] = load(panel + v * n);
#pragma GCC unroll 16
            for (int i = 0; i < Rows; i++) {
                const Vec<T> value = splat(places[i][kUnitStep ? k : k * step]);
                for (int v = 0; v < Vectors; v++) sums[i][v] += value * b[v];
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
        for (int v = 0; v < Vectors; v++) store(tile + (i * Vectors + v) * n, sums[i][v]);
}

// Calls use.operator()<Rows, Vectors, kUnitStep>() for the values at run time.
template <class T, class Use>
void with_tile(int rows, int width, bool unit_step, const Use& use) {
    const auto vectors = [&]<int Rows>() {
        if (width == kLanes<T>)
            unit_step ? use.template operator()<Rows, 1, true>()
                      : use.template operator()<Rows, 1, false>();
        else
            unit_step ? use.template operator()<Rows, 2, true>()
                      : use.template operator()<Rows, 2, false>();
    };
    [&]<int... I>(std::integer_sequence<int, I...>) {
        ((rows == I + 1 ? vectors.template operator()<I + 1>() : void()), ...);
    }(std::make_integer_sequence<int, kTileRows>{});
}

// A sum of taps over a framed image at places (j, k), every lane of a kernel at once.
template <class T>
struct Gather {
    Panels<T> panels;
    const T* kernel;      // packed: for each tap its value in every lane
    const long* offsets;  // of each tap, in the framed image
    long rows, columns;   // places
    long row_step, step;  // between places, in the framed image

    // finish(j, first lane, lanes, values, width) with the values of a row of places, lanes side by
    // side.
    template <class Finish>
    void run(const T* image, const Finish& finish) const {
        const long pieces = std::max((columns + kTileRows - 1) / kTileRows, 1L);
        T* values = scratch<T>(Scratch::kSums, columns * kTileColumns<T>);
        for (long q = 0; q < panels.count(); q++)
            for (long j = 0; j < rows; j++) {
                const int width = panels.width_of(q);
                for (long piece = 0; piece < pieces; piece++) {
                    const long k = piece * columns / pieces;
                    const int places = static_cast<int>((piece + 1) * columns / pieces - k);
                    const T* at = image + j * row_step + k * step;
                    const auto multiply = [&]<int Rows, int Vectors, bool kUnitStep>() {
                        gather_tile<T, Rows, Vectors, kUnitStep>(panels.terms, at, offsets, step,
                                                                 kernel + panels.at(q),
                                                                 values + k * width);
                    };
                    with_tile<T>(places, width, step == 1, multiply);
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
                          if (step == 1)
                              store_some(target, v, count);
                          else
                              for (long i = 0; i < count; i++) target[i * step] = v[i];
                      });
    }
};

// The forward pass of a convolution, ready for one image after another.
template <class T>
class Forward {
  public:
    Forward(const Convolution& conv, const T* kernel)
        : conv_(conv),
          frame_{conv.group_channels(),
                 conv.height,
                 conv.width,
                 conv.pad_h,
                 conv.pad_w,
                 (conv.out_h - 1) * conv.stride_h + (conv.kernel_h - 1) * conv.dilation_h + 1,
                 (conv.out_w - 1) * conv.stride_w + (conv.kernel_w - 1) * conv.dilation_w + 1},
          panels_{conv.group_filters(), conv.taps()},
          packed_(conv.groups * panels_.size()) {
        for (long g = 0; g < conv.groups && kernel != nullptr; g++)
            panels_.pack(packed_.data() + g * panels_.size(),
                         {kernel + g * conv.kernel_values(), conv.taps(), 1});
        for (long c = 0; c < conv.group_channels(); c++)
            for (long m = 0; m < conv.kernel_h; m++)
                for (long n = 0; n < conv.kernel_w; n++)
                    offsets_.push_back(c * frame_.plane() + m * conv.dilation_h * frame_.pitch() +
                                       n * conv.dilation_w);
    }

    template <class Finish>
    void run(const T* image, long group, const Finish& finish) const {
        const Gather<T> gather{
            panels_,     packed_.data() + group * panels_.size(), offsets_.data(), conv_.out_h,
            conv_.out_w, conv_.stride_h * frame_.pitch(),         conv_.stride_w};
        gather.run(framed(frame_, image), finish);
    }

    // dkernel, as tiles of taps × filters, += patchesᵀ · dz for one image and group.
    void add_kernel_gradient(const T* image, const T* dz, T* dkernel) const {
        const T* values = framed(frame_, image);
        const Panels<T> panels{conv_.group_filters(), conv_.positions()};
        T* packed = scratch<T>(Scratch::kPanelB, panels.size());
        panels.pack(packed, {dz, conv_.positions(), 1});
        const long pieces = (conv_.taps() + kTileRows - 1) / kTileRows;
        const long most = (conv_.taps() + pieces - 1) / pieces;
        for (long q = 0; q < panels.count(); q++)
            for (long t = 0; t < conv_.taps(); t += most) {
                const int taps = static_cast<int>(std::min(most, conv_.taps() - t));
                T* tile = dkernel + panels_.at(q) + t * panels.width_of(q);
                const auto multiply = [&]<int Rows, int Vectors, bool kUnitStep>() {
                    correlate_tile<T, Rows, Vectors, kUnitStep>(
                        values, offsets_.data() + t, conv_.out_h, conv_.out_w,
                        conv_.stride_h * frame_.pitch(), conv_.stride_w, packed + panels.at(q),
                        tile);
                };
                with_tile<T>(taps, panels.width_of(q), conv_.stride_w == 1, multiply);
            }
    }
    long gradient_values() const { return panels_.size(); }
    // Where add_kernel_gradient keeps the gradient of this tap of this filter.
    long gradient_at(long tap, long filter) const {
        const long q = filter / kTileColumns<T>;
        return panels_.at(q) + tap * panels_.width_of(q) + filter % kTileColumns<T>;
    }

  private:
    Convolution conv_;
    Frame frame_;
    Panels<T> panels_;
    Temporary<T> packed_;
    std::vector<long> offsets_;
};

// The input gradient of a convolution, ready for one dz after another.
template <class T>
class InputGradient {
  public:
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
                  across.low + across.high};
        T* packed = packed_.data();
        for (long y = 0; y < conv.stride_h; y++)
            for (long x = 0; x < conv.stride_w; x++) {
                Part part{y, x, {}, {}, packed};
                add_taps(part, down.low, across.low);
                const Panels<T> panels = panels_of(part);
                for (long g = 0; g < conv.groups; g++, packed += panels.size())
                    pack(part, panels, kernel + g * conv.kernel_values(), packed);
                parts_.push_back(std::move(part));
            }
    }

    // The gradient of one image and group, written there; every place once.
    void run(const T* dz, long group, const WriteLanes<T>& write) const {
        const T* values = framed(frame_, dz);
        for (const Part& part : parts_) {
            const long rows = (conv_.height - part.y + conv_.stride_h - 1) / conv_.stride_h;
            const long columns = (conv_.width - part.x + conv_.stride_w - 1) / conv_.stride_w;
            if (rows <= 0 || columns <= 0) continue;
            const Panels<T> panels = panels_of(part);
            const Gather<T> gather{panels,
                                   part.packed + group * panels.size(),
                                   part.offsets.data(),
                                   rows,
                                   columns,
                                   frame_.pitch(),
                                   1};
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
        std::vector<long> offsets;  // of each filter and tap, in the framed dz
        T* packed;
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
        const Panels<T> panels{conv.group_channels(), conv.group_filters() * conv.kernel_size()};
        return panels.size();
    }

    Panels<T> panels_of(const Part& part) const {
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
        for (long f = 0; f < conv_.group_filters(); f++)
            for (const long offset : offsets) part.offsets.push_back(f * frame_.plane() + offset);
    }

    void pack(const Part& part, const Panels<T>& panels, const T* kernel, T* packed) const {
        for (long q = 0; q < panels.count(); q++) {
            T* target = packed + panels.at(q);
            for (long f = 0; f < conv_.group_filters(); f++)
                for (const long tap : part.taps)
                    for (int l = 0; l < panels.width_of(q); l++) {
                        const long c = q * kTileColumns<T> + l;
                        const long at =
                            (f * conv_.group_channels() + c) * conv_.kernel_size() + tap;
                        *target++ = l < panels.lanes_of(q) ? kernel[at] : T(0);
                    }
        }
    }

    Convolution conv_;
    Temporary<T> packed_;
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
        const long parts = std::clamp(kMemory / bytes, 2L, 16L);
        return std::max((batch + parts - 1) / parts, 1L);
    }

    long items_, values_, share_, parts_;
    Temporary<T> sums_;
};

// dkernel (filters, taps) from the tiles that Forward::add_kernel_gradient summed for each group.
template <class T>
void write_kernel_gradient(const Convolution& conv, const Forward<T>& forward, const T* sums,
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
