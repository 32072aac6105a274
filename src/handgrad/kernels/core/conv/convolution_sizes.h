// The sizes of a convolution, and what follows from them alone.
#pragma once

#include <array>
#include <vector>

#include "core/binding/check.h"
#include "core/conv/padded_input.h"
#include "core/conv/windows.h"

namespace handgrad {

struct Convolution {
    long batch, channels, height, width;
    long filters, kernel_h, kernel_w;
    long stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
    long out_h, out_w;

    long group_channels() const { return channels / groups; }
    long group_filters() const { return filters / groups; }
    long kernel_size() const { return kernel_h * kernel_w; }
    long patch_size() const { return group_channels() * kernel_size(); }
    long positions() const { return out_h * out_w; }
    long image_values() const { return group_channels() * height * width; }
    long output_values() const { return group_filters() * positions(); }
    long kernel_values() const { return group_filters() * patch_size(); }
};

// The sizes as the Python side lists them; in an array, as to read them must take no memory: a
// caster of nanobind may not throw.
using ConvolutionSizes = std::array<long, 16>;

// The sizes of a convolution of `image` (N, C, H, W), or of the transpose of one, in which images
// and outputs change places.
template <class Image, class Weight, class Output>
Convolution checked_convolution(const Check& check, const ConvolutionSizes& s, const char* name,
                                const Image& image, const Weight& weight, const char* output_name,
                                const Output& output) {
    const Convolution conv{s[0], s[1], s[2],  s[3],  s[4],  s[5],  s[6],  s[7],
                           s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]};
    check.shape(name, image, conv.batch, conv.channels, conv.height, conv.width);
    check.divides("groups", conv.groups, conv.channels);
    check.divides("groups", conv.groups, conv.filters);
    check.shape("weight", weight, conv.filters, conv.group_channels(), conv.kernel_h,
                conv.kernel_w);
    check.shape(output_name, output, conv.batch, conv.filters, conv.out_h, conv.out_w);
    check_windows(check, conv.height, conv.kernel_h, conv.stride_h, conv.pad_h, conv.dilation_h,
                  conv.out_h);
    check_windows(check, conv.width, conv.kernel_w, conv.stride_w, conv.pad_w, conv.dilation_w,
                  conv.out_w);
    check.product("the padded image", sizeof(double), conv.group_channels() + 1,
                  conv.height + 2 * conv.pad_h + conv.stride_h,
                  conv.width + 2 * conv.pad_w + conv.stride_w);
    return conv;
}

// The image as kernel offsets index it.
inline PaddedInput padded_input_of(const Convolution& conv) {
    return {conv.group_channels(),
            conv.height,
            conv.width,
            conv.pad_h,
            conv.pad_w,
            (conv.out_h - 1) * conv.stride_h + (conv.kernel_h - 1) * conv.dilation_h + 1,
            (conv.out_w - 1) * conv.stride_w + (conv.kernel_w - 1) * conv.dilation_w + 1,
            conv.stride_w};
}

inline std::vector<KernelOffset> kernel_offsets_of(const Convolution& conv) {
    std::vector<KernelOffset> kernel_offsets;
    for (long m = 0; m < conv.kernel_h; m++)
        for (long n = 0; n < conv.kernel_w; n++)
            kernel_offsets.push_back(
                {m * conv.kernel_w + n, m * conv.dilation_h, n * conv.dilation_w});
    return kernel_offsets;
}

}  // namespace handgrad
