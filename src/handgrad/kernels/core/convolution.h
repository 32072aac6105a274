// Convolution as the tiled product: only the gathering of operands and the writing of tiles differ.
//
// With V the image, K the kernel and one "tap" t = (channel, m, n) per value of a filter, at output
// position p = (j, k) (Yamanishi, equations 6 to 9):
//   forward          Z[f, p]  = Σ_t K[f, t] V[t at p]        B gathers patches
//   kernel gradient  dK[f, t] = Σ_p dZ[f, p] V[t at p]       B gathers patches, transposed
//   input gradient   dV[t at p] += Σ_f K[f, t] dZ[f, p]      the finished tile is scattered
// "t at p" lies at image[tap[t] + place(p)], so a gather or scatter moves whole runs of an output
// row. Padding and a column stride are dealt with once, when an image is laid out for this: zeros
// around it, columns sorted by their remainder modulo the stride, so that runs are contiguous.
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
    long taps() const { return group_channels() * kernel_h * kernel_w; }
    long positions() const { return out_h * out_w; }

    // The laid-out image: per channel, `rows` rows of stride_w runs of `run` columns each.
    bool in_place() const { return pad_h == 0 && pad_w == 0 && stride_w == 1; }
    long run() const {
        return ((out_w - 1) * stride_w + (kernel_w - 1) * dilation_w + stride_w) / stride_w;
    }
    long pitch() const { return in_place() ? width : stride_w * run(); }
    long rows() const {
        return in_place() ? height : (out_h - 1) * stride_h + (kernel_h - 1) * dilation_h + 1;
    }
    long plane() const { return rows() * pitch(); }
    long row_step() const { return stride_h * pitch(); }

    std::vector<long> tap_offsets() const {
        std::vector<long> offsets;
        offsets.reserve(static_cast<std::size_t>(taps()));
        for (long c = 0; c < group_channels(); c++)
            for (long m = 0; m < kernel_h; m++)
                for (long n = 0; n < kernel_w; n++) {
                    const long column = n * dilation_w;
                    offsets.push_back(c * plane() + m * dilation_h * pitch() +
                                      column % stride_w * run() + column / stride_w);
                }
        return offsets;
    }
};

// Walks the runs of a laid-out image: visit(run, before, inside, after, source), where `source` is
// the index in the image of the first of `inside` values, stride_w apart; the rest is padding.
template <class T, class Visit>
void for_each_run(const Convolution& conv, T* laid_out, const Visit& visit) {
    const long step = conv.stride_w, run = conv.run();
    for (long c = 0; c < conv.group_channels(); c++)
        for (long r = 0; r < conv.rows(); r++) {
            const long y = r - conv.pad_h;
            const bool row_inside = y >= 0 && y < conv.height;
            for (long phase = 0; phase < step; phase++, laid_out += run) {
                const auto first_at = [&](long x) {
                    return std::clamp((x - phase + step - 1) / step, 0L, run);
                };
                const long begin = row_inside ? first_at(conv.pad_w) : 0;
                const long end = row_inside ? first_at(conv.pad_w + conv.width) : 0;
                const long x = phase + begin * step - conv.pad_w;
                visit(laid_out, begin, end - begin, run - end, (c * conv.height + y) * conv.width + x);
            }
        }
}

// The image of one group, laid out; the image itself where it already lies so.
template <class T>
const T* lay_out(const Convolution& conv, const T* image) {
    if (conv.in_place()) return image;
    T* laid_out = scratch<T>(Scratch::kImage, conv.group_channels() * conv.plane());
    for_each_run(conv, laid_out, [&](T* run, long before, long inside, long after, long source) {
        std::fill_n(run, before, T(0));
        if (conv.stride_w == 1)
            std::copy_n(image + source, inside, run + before);
        else
            for (long q = 0; q < inside; q++) run[before + q] = image[source + q * conv.stride_w];
        std::fill_n(run + before + inside, after, T(0));
    });
    return laid_out;
}

// The reverse: the laid-out gradient back to an image; what no output reached stays 0.
template <class T>
void lay_back(const Convolution& conv, T* laid_out, T* image) {
    std::fill_n(image, conv.group_channels() * conv.height * conv.width, T(0));
    for_each_run(conv, laid_out, [&](T* run, long before, long inside, long, long source) {
        for (long q = 0; q < inside; q++) image[source + q * conv.stride_w] = run[before + q];
    });
}

// A stretch of output positions cut into pieces that lie contiguously in the laid-out image.
template <class T>
struct Pieces {
    struct Piece {
        int at, count;
        long place;
    };
    Piece piece[kTileColumns<T>];
    int count = 0;

    Pieces(const Convolution& conv, long first, int positions) {
        long row = first / conv.out_w, column = first % conv.out_w;
        for (int at = 0; at < positions;) {
            const long room = std::min<long>(positions - at, conv.out_w - column);
            const int step = static_cast<int>(std::min<long>(room, kLanes<T>));
            piece[count++] = {at, step, row * conv.row_step() + column};
            at += step;
            column += step;
            if (column == conv.out_w) {
                column = 0;
                row++;
            }
        }
    }
    const Piece* begin() const { return piece; }
    const Piece* end() const { return piece + count; }
};

// Patches with positions side by side: the B of the forward product.
template <class T>
struct PatchPack {
    const Convolution& conv;
    const T* image;
    const long* taps;

    bool lanes_adjacent() const { return false; }

    void operator()(T* panel, int width, long first, int lanes, long term, long depth) const {
        const Pieces<T> pieces(conv, first, lanes);
        for (long p = 0; p < depth; p++, panel += width) {
            const T* source = image + taps[term + p];
            for (const auto& piece : pieces)
                store_some(panel + piece.at, load_some(source + piece.place, piece.count), piece.count);
            for (int l = lanes; l < width; l++) panel[l] = T(0);
        }
    }
};

// Patches with taps side by side: the B of the kernel gradient, whose sum runs over positions.
template <class T>
struct TransposedPatchPack {
    const Convolution& conv;
    const T* image;
    const long* taps;

    bool lanes_adjacent() const { return false; }

    void operator()(T* panel, int width, long first, int lanes, long term, long depth) const {
        constexpr int n = kLanes<T>;
        long row = term / conv.out_w, column = term % conv.out_w;
        for (long p = 0; p < depth;) {
            const long room = std::min(depth - p, conv.out_w - column);
            const int terms = static_cast<int>(std::min<long>(room, n));
            const T* source = image + row * conv.row_step() + column;
            for (int l = 0; l < width; l += n)
                pack_transposed_square(panel + p * width + l, width, std::min(n, width - l), terms,
                                       [&](int r) {
                                           return l + r < lanes ? source + taps[first + l + r]
                                                                : nullptr;
                                       });
            p += terms;
            column += terms;
            if (column == conv.out_w) {
                column = 0;
                row++;
            }
        }
    }
};

// The finish of the input gradient: a tile of taps × positions, added where its patches came from.
template <class T>
struct ScatterTile {
    const Convolution& conv;
    T* image;
    const long* taps;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        const Pieces<T> pieces(conv, column, columns);
        for (int i = 0; i < rows; i++, tile += width) {
            T* target = image + taps[row + i];
            for (const auto& piece : pieces) {
                T* place = target + piece.place;
                const Vec<T> sum = load_some(place, piece.count) + load_some(tile + piece.at, piece.count);
                store_some(place, sum, piece.count);
            }
        }
    }
};

// One image, one group: z (filters, positions) = kernel · patches.
template <class T, class Finish>
void convolve_image(const Convolution& conv, const T* laid_out, const long* taps, const T* kernel,
                    const Finish& finish) {
    multiply_block<T>(0, conv.group_filters(), 0, conv.positions(), conv.taps(),
                      StridedPack<T>{kernel, conv.taps(), 1}, PatchPack<T>{conv, laid_out, taps},
                      finish);
}

// One image, one group: dkernel += dz · patchesᵀ.
template <class T>
void add_kernel_gradient(const Convolution& conv, const T* laid_out, const long* taps, const T* dz,
                         T* dkernel) {
    multiply_block<T>(0, conv.group_filters(), 0, conv.taps(), conv.positions(),
                      StridedPack<T>{dz, conv.positions(), 1},
                      TransposedPatchPack<T>{conv, laid_out, taps},
                      WriteTile<T>{dkernel, conv.taps(), true});
}

// One image, one group: dimage = the scattered sum of kernelᵀ · dz.
template <class T>
void input_gradient_image(const Convolution& conv, const long* taps, const T* kernel, const T* dz,
                          T* dimage) {
    const long values = conv.group_channels() * conv.plane();
    T* laid_out = conv.in_place() ? dimage : scratch<T>(Scratch::kImage, values);
    std::fill_n(laid_out, values, T(0));
    multiply_block<T>(0, conv.taps(), 0, conv.positions(), conv.group_filters(),
                      StridedPack<T>{kernel, 1, conv.taps()},
                      StridedPack<T>{dz, 1, conv.positions()}, ScatterTile<T>{conv, laid_out, taps});
    if (!conv.in_place()) lay_back(conv, laid_out, dimage);
}

// `values` sums over the batch, such as dweight and dbias: some images share a part, the parts are
// added in order. How many share is a function of the sizes alone, never of the threads.
template <class T>
class BatchSums {
  public:
    BatchSums(const Convolution& conv, long values)
        : items_(conv.batch * conv.groups),
          values_(values),
          share_(images_per_part(conv.batch, values) * conv.groups),
          parts_((items_ + share_ - 1) / share_),
          sums_(parts_ * values) {}

    // body(item, sums) for every image and group, in order within a part.
    template <class Body>
    void run(const Body& body) const {
        parallel_for(parts_, 1, [&](long begin, long end) {
            for (long part = begin; part < end; part++) {
                T* sums = sums_.data() + part * values_;
                std::fill_n(sums, values_, T(0));
                const long last = std::min((part + 1) * share_, items_);
                for (long item = part * share_; item < last; item++) body(item, sums);
            }
        });
    }

    void write(T* target, long offset, long count) const {
        parallel_for(count, 4096, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                T sum = T(0);
                for (long part = 0; part < parts_; part++)
                    sum += sums_.data()[part * values_ + offset + i];
                target[i] = sum;
            }
        });
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

// The sizes as the Python side lists them.
inline Convolution convolution_of(const std::vector<long>& s) {
    return {s[0], s[1], s[2],  s[3],  s[4],  s[5],  s[6],  s[7],
            s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]};
}

}  // namespace handgrad
