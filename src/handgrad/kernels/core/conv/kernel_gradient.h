// The kernel gradient of a convolution: dK[t, f] = Σ_p V[t at p] dZ[p, f] over output positions p.
#pragma once

#include "core/conv/kernel_offset_sum.h"

namespace handgrad {

// Sums for one image and group after another, kept as tiles of patch values × filters.
template <class V>
class KernelGradient {
  public:
    using T = SumOf<V>;

    explicit KernelGradient(const Convolution& conv)
        : conv_(conv),
          padded_(padded_input_of(conv)),
          sums_{conv.group_filters(), conv.patch_size()} {
        for (long c = 0; c < conv.group_channels(); c++)
            for (const KernelOffset& kernel_offset : kernel_offsets_of(conv))
                offsets_.push_back(c * padded_.channel_step() + kernel_offset.row * row_step() +
                                   padded_.at(kernel_offset.column));
    }

    // The number of sums of one group.
    long values() const { return sums_.size(); }
    long at(long channel, long kernel_offset, long filter) const {
        const long q = filter / sums_.kWidth;
        return sums_.at(q) + (channel * conv_.kernel_size() + kernel_offset) * sums_.width_of(q) +
               filter % sums_.kWidth;
    }

    // sums += patchesᵀ · dz for one image and group.
    void add(const T* image, const T* dz, T* sums) const {
        if (conv_.patch_size() == 0) return;  // no channels
        const auto* values = Operand<V>::for_positions(padded_, image);
        const Positions positions{conv_.out_h, conv_.out_w, conv_.stride_h * row_step()};
        const long tiles = (conv_.patch_size() + kMR - 1) / kMR;
        const long most = (conv_.patch_size() + tiles - 1) / tiles;
        V* packed = thread_workspace<V>(WorkspaceSlot::kPanelB, conv_.positions() * sums_.kWidth);
        for (long q = 0; q < sums_.count(); q++) {
            const int width = sums_.width_of(q);
            Operand<V>::pack_positions(packed, positions, width, {dz, conv_.positions(), 1},
                                       q * sums_.kWidth, sums_.lanes_of(q));
            for (long t = 0; t < conv_.patch_size(); t += most) {
                breathe();
                correlate_micro_kernel(static_cast<int>(std::min(most, conv_.patch_size() - t)),
                                       width, positions, values, offsets_.data() + t, packed,
                                       sums + sums_.at(q) + t * width);
            }
        }
    }

  private:
    long row_step() const { return padded_.row_step(conv_.group_channels()); }

    Convolution conv_;
    PaddedInput padded_;
    MicroPanels<T> sums_;
    std::vector<long> offsets_;
};

// dkernel (filters, channels, kernel offsets) from the sums of all groups.
template <class V, class T>
void write_kernel_gradient(const Convolution& conv, const KernelGradient<V>& gradient,
                           const T* sums, T* dkernel) {
    const long filters = conv.group_filters(), size = conv.kernel_size();
    const long chunk = std::max(16384 / std::max(conv.patch_size(), 1L), 1L);
    parallel_for(conv.filters, chunk, [&](long begin, long end) {
        for (long f = begin; f < end; f++) {
            const T* group = sums + f / filters * gradient.values();
            T* filter = dkernel + f * conv.patch_size();
            for (long c = 0; c < conv.group_channels(); c++)
                for (long t = 0; t < size; t++)
                    filter[c * size + t] = group[gradient.at(c, t, f % filters)];
        }
    });
}

}  // namespace handgrad
