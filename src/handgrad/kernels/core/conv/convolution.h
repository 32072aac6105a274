// Convolution as the tiled product, whose micro-kernel finds its operands elsewhere.
//
// With V the image, K the kernel and one patch index t = (channel, m, n) per value of a filter,
// where (m, n) is the kernel offset, at output position p = (j, k):
//   forward          Z[p, f]  = Σ_t V[t at p] K[t, f]                        kernel_offset_sum.h
//   input gradient   dV[q, c] = Σ_t dZ[t at q] K[t, c]          the same, with dZ as the image
//   kernel gradient  dK[t, f] = Σ_p V[t at p] dZ[p, f]                         kernel_gradient.h
// V is the left operand each time, and a left operand is read one value at a time: it needs no
// packing, only padding (padded_input.h). The right operands, kernels and dZ, are small and are
// packed as in matmul.h. In the input gradient a stride s means that only every s-th position of dV
// receives from a given kernel offset; such positions form s · s convolutions of stride 1, each
// with kernel offsets of its own.
// Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 6 to 9.
//
// V below is the panel element: a number, or a Bf16x2. It decides the layout of the image and the
// micro-kernel (convolution_micro_kernels.h). AMX, with its tiles, has sums of its own
// (convolution_amx.h).
#pragma once

#include <deque>

#include "core/conv/convolution_amx.h"
#include "core/conv/kernel_gradient.h"

namespace handgrad {

// Stores a row of positions to an image whose channels are the lanes: positions x, x + step, ... of
// row y, and of the rows after it if these are joined.
template <class T>
struct StoreLanes {
    T* image;
    long height, width;
    const T* bias;  // of each channel, or null

    template <class Row>
    void operator()(long y, long x, long step, long lane, const Row& row) const {
        row.for_each_lane([&](int l, long p, long count, Vec<T> v) {
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
    using T = SumOf<V>;

    Forward(const Convolution& conv, const T* kernel)
        : conv_(conv),
          padded_(padded_input_of(conv)),
          sum_(padded_,
               {kernel, conv.groups, conv.group_filters(), conv.group_channels(),
                conv.kernel_size(), conv.kernel_values(), conv.patch_size(), conv.kernel_size()},
               kernel_offsets_of(conv)) {}

    // epilogue(row, first filter, sums) with the sums of one image and group from this row of
    // output positions on, one of `rows`.
    template <class Epilogue>
    void run(const T* image, long group, Range rows, const Epilogue& epilogue) const {
        sum_.run(Operand<V>::for_offsets(padded_, image), group, rows, conv_.out_w, conv_.stride_h,
                 true, epilogue);
    }

  private:
    Convolution conv_;
    PaddedInput padded_;
    KernelOffsetSum<V> sum_;
};

// The input gradient of a convolution, ready for one dz after another.
template <class V>
class InputGradient {
  public:
    using T = SumOf<V>;

    InputGradient(const Convolution& conv, const T* kernel) : conv_(conv) {
        // Output positions -low to high - 1 are read from dz, padded with zeros.
        const Reach down = reach(conv.kernel_h, conv.stride_h, conv.pad_h, conv.dilation_h,
                                 conv.height, conv.out_h);
        const Reach across = reach(conv.kernel_w, conv.stride_w, conv.pad_w, conv.dilation_w,
                                   conv.width, conv.out_w);
        padded_ = {conv.group_filters(),
                   conv.out_h,
                   conv.out_w,
                   down.low,
                   across.low,
                   down.low + down.high,
                   across.low + across.high,
                   1};
        const Kernels<T> kernels{kernel,
                                 conv.groups,
                                 conv.group_channels(),
                                 conv.group_filters(),
                                 conv.kernel_size(),
                                 conv.kernel_values(),
                                 conv.kernel_size(),
                                 conv.patch_size()};
        for (long y = 0; y < std::min(conv.stride_h, conv.height); y++)
            for (long x = 0; x < std::min(conv.stride_w, conv.width); x++)
                parts_.emplace_back(y, x, padded_, kernels,
                                    kernel_offsets_at(y, x, down.low, across.low));
    }

    // Writes the gradient of one image and group, every position once.
    void run(const T* dz, long group, const StoreLanes<T>& write) const {
        const auto* values = Operand<V>::for_offsets(padded_, dz);
        for (const Part& part : parts_) {
            const long rows = (conv_.height - part.y + conv_.stride_h - 1) / conv_.stride_h;
            const long columns = (conv_.width - part.x + conv_.stride_w - 1) / conv_.stride_w;
            const bool joined = conv_.stride_h == 1 && conv_.stride_w == 1;
            part.sum.run(values, group, {0, rows}, columns, 1, joined,
                         [&](long j, long lane, const auto& row) {
                             write(part.y + j * conv_.stride_h, part.x, conv_.stride_w, lane, row);
                         });
        }
    }

  private:
    // The positions y, y + stride_h, ... and x, x + stride_w, ... of the image, which have the same
    // kernel offsets.
    struct Part {
        long y, x;
        KernelOffsetSum<V> sum;
        Part(long y, long x, const PaddedInput& padded, const Kernels<T>& kernels,
             const std::vector<KernelOffset>& kernel_offsets)
            : y(y), x(x), sum(padded, kernels, kernel_offsets) {}
    };
    struct Reach {
        long low, high;
    };

    // For position y in the image and kernel offset m, the output position is (y + pad - m ·
    // dilation) / stride if that is whole; all in all output positions -low to high - 1.
    static Reach reach(long kernel, long stride, long pad, long dilation, long size, long out) {
        const long first = pad - (kernel - 1) * dilation, last = size - 1 + pad;
        const long low = first < 0 ? (-first + stride - 1) / stride : 0;
        return {low, std::max(last / stride + 1, out)};
    }

    std::vector<KernelOffset> kernel_offsets_at(long y, long x, long low_h, long low_w) const {
        std::vector<KernelOffset> kernel_offsets;
        for (long m = 0; m < conv_.kernel_h; m++)
            for (long n = 0; n < conv_.kernel_w; n++) {
                const long down = y + conv_.pad_h - m * conv_.dilation_h;
                const long across = x + conv_.pad_w - n * conv_.dilation_w;
                if (down % conv_.stride_h != 0 || across % conv_.stride_w != 0) continue;
                kernel_offsets.push_back({m * conv_.kernel_w + n, down / conv_.stride_h + low_h,
                                          across / conv_.stride_w + low_w});
            }
        return kernel_offsets;
    }

    Convolution conv_;
    PaddedInput padded_;
    std::deque<Part> parts_;
};

// `values` sums over the batch, such as dweight and dbias: some images add into one part, the parts
// are added in order. The images of a part follow from the sizes alone, never from the threads.
template <class T>
class BatchSums {
  public:
    BatchSums(const Convolution& conv, long values)
        : items_(conv.batch * conv.groups),
          values_(values),
          items_per_part_(images_per_part(conv.batch, values) * conv.groups),
          parts_(std::max((items_ + items_per_part_ - 1) / items_per_part_, 1L)),
          sums_(parts_ * values) {}

    // body(item, sums) for every image and group, in order within a part; then the total.
    template <class Body>
    const T* run(const Body& body) const {
        parallel_for(parts_, 1, [&](long begin, long end) {
            for (long part = begin; part < end; part++) {
                T* sums = sums_.data() + part * values_;
                std::fill_n(sums, values_, T(0));
                const long last = std::min((part + 1) * items_per_part_, items_);
                for (long item = part * items_per_part_; item < last; item++) body(item, sums);
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

    long items_, values_, items_per_part_, parts_;
    Workspace<T> sums_;
};

}  // namespace handgrad
