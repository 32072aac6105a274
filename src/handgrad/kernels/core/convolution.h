// Convolution as the tiled product: only the gathering of operands and the writing of tiles differ.
//
// With V the image, K the kernel and one "tap" t = (channel, m, n) per value of a filter, at output
// position p = (j, k) (Yamanishi, equations 6 to 9):
//   forward          Z[f, p]  = Σ_t K[f, t] V[t at p]        B is the patches
//   kernel gradient  dK[f, t] = Σ_p dZ[f, p] V[t at p]       B is the patches, transposed
//   input gradient   dV[t at p] += Σ_f K[f, t] dZ[f, p]      the finished tile is scattered
// Before that an image is laid out so that "t at p" is laid_out[tap[t] + p], for all positions p one
// after another. For each column n of the kernel there is a copy of the image, shifted by n, with
// zeros around it and only the columns the stride meets; rows are sorted by their remainder modulo
// the stride. The rows m of the kernel share a copy. So patches need no packing, whatever the
// stride, padding and dilation. Tall images are laid out a block of output rows at a time.
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

    // With one kernel column, nothing to pad and nothing to skip, an image already lies so.
    bool in_place() const {
        return kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0;
    }
    // Output rows that are worked on together: what they need should stay in the caches.
    long block_rows() const {
        constexpr long kValues = 1 << 18;
        if (in_place()) return std::max(out_h, 1L);
        const long row = std::max(group_channels() * kernel_w * stride_h * out_w, 1L);
        return std::clamp(kValues / row - extra_rows(), 1L, std::max(out_h, 1L));
    }
    // Rows of one remainder that a block has beyond one per output row.
    long extra_rows() const { return (kernel_h - 1) * dilation_h / stride_h; }
    long remainder_size() const { return (block_rows() + extra_rows()) * out_w; }
    long plane() const {
        if (in_place()) return height * width;
        const long size = stride_h * remainder_size();
        // Planes a multiple of a page apart would compete for the same lines of the cache.
        return size % 256 == 0 ? size + kLanes<float> : size;
    }
    long laid_out_size() const { return group_channels() * kernel_w * plane(); }

    std::vector<long> tap_offsets() const {
        std::vector<long> offsets;
        offsets.reserve(static_cast<std::size_t>(taps()));
        for (long c = 0; c < group_channels(); c++)
            for (long m = 0; m < kernel_h; m++)
                for (long n = 0; n < kernel_w; n++) {
                    const long row = m * dilation_h;
                    offsets.push_back((c * kernel_w + n) * plane() +
                                      row % stride_h * remainder_size() + row / stride_h * out_w);
                }
        return offsets;
    }
};

// The sizes as the Python side lists them.
inline Convolution convolution_of(const std::vector<long>& s) {
    return {s[0], s[1], s[2],  s[3],  s[4],  s[5],  s[6],  s[7],
            s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]};
}

// Output rows [first, first + count) of one image.
struct RowBlock {
    long first, count;
};

// work(block) for every block of output rows.
template <class Work>
void for_each_row_block(const Convolution& conv, const Work& work) {
    const long rows = conv.block_rows();
    for (long j = 0; j < conv.out_h; j += rows) work(RowBlock{j, std::min(rows, conv.out_h - j)});
}

// A stretch of rows in both layouts: columns [left, right) of `rows` laid-out rows, out_w apart, come
// from the image at `source` (of column 0, which may be padding), `source_step` a row; the columns
// beside them are padding, as are `above` whole rows before and `below` after.
template <class T>
struct Stretch {
    T* laid_out;
    long above, rows, below, left, right, source, source_step;
};

// Calls visit(stretch) for every stretch of a laid-out block.
template <class T, class Visit>
void for_each_stretch(const Convolution& conv, RowBlock block, T* laid_out, const Visit& visit) {
    const long step_h = conv.stride_h, step_w = conv.stride_w;
    const long remainders = std::min(step_h, (conv.kernel_h - 1) * conv.dilation_h + 1);
    const long rows = block.count + conv.extra_rows();
    // The first index whose value index · step + shift is not below `bound`.
    const auto first_at = [](long bound, long shift, long step, long most) {
        return std::clamp((bound - shift + step - 1) / step, 0L, most);
    };
    for (long c = 0; c < conv.group_channels(); c++)
        for (long n = 0; n < conv.kernel_w; n++)
            for (long remainder = 0; remainder < remainders; remainder++) {
                const long x = n * conv.dilation_w - conv.pad_w;
                const long y = block.first * step_h + remainder - conv.pad_h;
                const long above = first_at(0, y, step_h, rows);
                const long end = std::max(first_at(conv.height, y, step_h, rows), above);
                const long left = first_at(0, x, step_w, conv.out_w);
                const long right = std::max(first_at(conv.width, x, step_w, conv.out_w), left);
                visit(Stretch<T>{
                    laid_out + (c * conv.kernel_w + n) * conv.plane() +
                        remainder * conv.remainder_size(),
                    above, end - above, rows - end, left, right,
                    (c * conv.height + y + above * step_h) * conv.width + x, step_h * conv.width});
            }
}

// Calls visit(lanes inside the image, lanes of the row, first column) for each vector of a row.
template <class T, class Visit>
void for_each_vector(const Convolution& conv, const Stretch<T>& stretch, const Visit& visit) {
    for (long k = 0; k < conv.out_w; k += kLanes<T>) {
        const long wide = std::min<long>(kLanes<T>, conv.out_w - k);
        const long left = std::clamp(stretch.left - k, 0L, wide);
        visit(LaneRange<T>(left, std::clamp(stretch.right - k, left, wide)),
              LaneRange<T>(0, wide), k);
    }
}

// The block of the image of one group, laid out; the image itself where it already lies so.
template <class T>
const T* lay_out(const Convolution& conv, RowBlock block, const T* image) {
    if (conv.in_place()) return image;
    T* laid_out = scratch<T>(Scratch::kImage, conv.laid_out_size());
    for_each_stretch(conv, block, laid_out, [&](const Stretch<T>& s) {
        T* rows = s.laid_out + s.above * conv.out_w;
        std::fill_n(s.laid_out, s.above * conv.out_w, T(0));
        std::fill_n(rows + s.rows * conv.out_w, s.below * conv.out_w, T(0));
        if (conv.stride_w == 1) {
            for_each_vector(conv, s, [&](auto inside, auto all, long k) {
                for (long i = 0; i < s.rows; i++)
                    all.store(rows + i * conv.out_w + k,
                              inside.load(image + s.source + i * s.source_step + k));
            });
            return;
        }
        for (long i = 0; i < s.rows; i++) {
            T* row = rows + i * conv.out_w;
            const T* source = image + s.source + i * s.source_step;
            std::fill_n(row, s.left, T(0));
            for (long k = s.left; k < s.right; k += kLanes<T>) {
                const long count = std::min<long>(kLanes<T>, s.right - k);
                store_some(row + k, load_strided(source + k * conv.stride_w, conv.stride_w, count),
                           count);
            }
            std::fill_n(row + s.right, conv.out_w - s.right, T(0));
        }
    });
    return laid_out;
}

// The reverse: a laid-out gradient added to an image, every copy of a value where it came from.
template <class T>
void add_back(const Convolution& conv, RowBlock block, T* laid_out, T* image) {
    for_each_stretch(conv, block, laid_out, [&](const Stretch<T>& s) {
        const T* rows = s.laid_out + s.above * conv.out_w;
        if (conv.stride_w == 1) {
            for_each_vector(conv, s, [&](auto inside, auto, long k) {
                for (long i = 0; i < s.rows; i++) {
                    T* target = image + s.source + i * s.source_step + k;
                    inside.store(target,
                                 inside.load(target) + inside.load(rows + i * conv.out_w + k));
                }
            });
            return;
        }
        for (long i = 0; i < s.rows; i++)
            for (long k = s.left; k < s.right; k++)
                image[s.source + i * s.source_step + k * conv.stride_w] += rows[i * conv.out_w + k];
    });
}

// Patches with positions side by side: the B of the forward product. They lie ready; only the last,
// narrower panel is packed.
template <class T>
struct PatchPack {
    const T* laid_out;
    const long* taps;

    bool lanes_adjacent() const { return false; }
    const T* place(long first, int lanes) const {
        return lanes == kTileColumns<T> ? laid_out + first : nullptr;
    }
    const long* offsets() const { return taps; }

    void operator()(T* panel, int width, long first, int lanes, long term, long depth) const {
        for (long p = 0; p < depth; p++, panel += width)
            for (int l = 0; l < width; l += kLanes<T>) {
                const int have = std::clamp(lanes - l, 0, kLanes<T>);
                store(panel + l, load_some(laid_out + taps[term + p] + first + l, have));
            }
    }
};

// Patches with taps side by side: the B of the kernel gradient, whose sum runs over positions.
template <class T>
struct TransposedPatchPack {
    const T* laid_out;
    const long* taps;

    bool lanes_adjacent() const { return false; }

    void operator()(T* panel, int width, long first, int lanes, long term, long depth) const {
        constexpr int n = kLanes<T>;
        for (long p = 0; p < depth; p += n)
            for (int l = 0; l < width; l += n)
                pack_transposed_square(
                    panel + p * width + l, width, std::min(n, width - l),
                    static_cast<int>(std::min<long>(n, depth - p)), [&](int r) {
                        return l + r < lanes ? laid_out + taps[first + l + r] + term + p : nullptr;
                    });
    }
};

// The finish of the input gradient: a tile of taps × positions, added where its patches came from.
template <class T>
struct ScatterTile {
    T* laid_out;
    const long* taps;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        for (int i = 0; i < rows; i++, tile += width) {
            T* target = laid_out + taps[row + i] + column;
            for (int c = 0; c < columns; c += kLanes<T>) {
                const LaneRange<T> lanes(0, std::min(kLanes<T>, columns - c));
                lanes.store(target + c, lanes.load(target + c) + load(tile + c));
            }
        }
    }
};

// One image, one group: z (filters, positions) = kernel · patches; finish_at(position) is the finish
// of the block whose first position that is.
template <class T, class FinishAt>
void convolve_image(const Convolution& conv, const long* taps, const T* image, const T* kernel,
                    const FinishAt& finish_at) {
    for_each_row_block(conv, [&](RowBlock block) {
        const PatchPack<T> patches{lay_out(conv, block, image), taps};
        multiply_block<T>(0, conv.group_filters(), 0, block.count * conv.out_w, conv.taps(),
                          StridedPack<T>{kernel, conv.taps(), 1}, patches,
                          finish_at(block.first * conv.out_w));
    });
}

// One image, one group: dkernel += dz · patchesᵀ.
template <class T>
void add_kernel_gradient(const Convolution& conv, const long* taps, const T* image, const T* dz,
                         T* dkernel) {
    for_each_row_block(conv, [&](RowBlock block) {
        const TransposedPatchPack<T> patches{lay_out(conv, block, image), taps};
        multiply_block<T>(
            0, conv.group_filters(), 0, conv.taps(), block.count * conv.out_w,
            StridedPack<T>{dz + block.first * conv.out_w, conv.positions(), 1}, patches,
            WriteTile<T>{dkernel, conv.taps(), true});
    });
}

// One image, one group: dimage = the scattered sum of kernelᵀ · dz.
template <class T>
void input_gradient_image(const Convolution& conv, const long* taps, const T* kernel, const T* dz,
                          T* dimage) {
    std::fill_n(dimage, conv.group_channels() * conv.height * conv.width, T(0));
    for_each_row_block(conv, [&](RowBlock block) {
        T* laid_out = dimage;
        if (!conv.in_place()) {
            laid_out = scratch<T>(Scratch::kImage, conv.laid_out_size());
            std::fill_n(laid_out, conv.laid_out_size(), T(0));
        }
        multiply_block<T>(
            0, conv.taps(), 0, block.count * conv.out_w, conv.group_filters(),
            StridedPack<T>{kernel, 1, conv.taps()},
            StridedPack<T>{dz + block.first * conv.out_w, 1, conv.positions()},
            ScatterTile<T>{laid_out, taps});
        if (!conv.in_place()) add_back(conv, block, laid_out, dimage);
    });
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

}  // namespace handgrad
