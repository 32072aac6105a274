// The windows of a pooling: planes of (height, width) under moving windows.
#pragma once

#include <algorithm>
#include <array>

#include "core/binding/check.h"
#include "core/conv/windows.h"
#include "core/runtime/threads.h"

namespace handgrad {

// The sizes as the Python side lists them.
using PoolingSizes = std::array<long, 13>;

struct Pooling {
    long planes, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
    long dilation_h, dilation_w, out_h, out_w;

    // `image` (N, C, H, W) and `outputs` (N, C, ...) have `planes` planes, whatever their leading
    // axes; an index into a plane is an integer of `index_bits` bits.
    template <class Image, class Outputs>
    Pooling(const Check& check, const PoolingSizes& s, const char* name, const Image& image,
            const char* output_name, const Outputs& outputs, int index_bits)
        : planes(s[0]),
          height(s[1]),
          width(s[2]),
          kernel_h(s[3]),
          kernel_w(s[4]),
          stride_h(s[5]),
          stride_w(s[6]),
          pad_h(s[7]),
          pad_w(s[8]),
          dilation_h(s[9]),
          dilation_w(s[10]),
          out_h(s[11]),
          out_w(s[12]) {
        check.values(name, image, planes, height, width);
        check.values(output_name, outputs, planes, out_h, out_w);
        check_windows(check, height, kernel_h, stride_h, pad_h, dilation_h, out_h);
        check_windows(check, width, kernel_w, stride_w, pad_w, dilation_w, out_w);
        check.range("kernel", kernel_h, 1, 2 * height + 1);
        check.range("kernel", kernel_w, 1, 2 * width + 1);
        check.range("an image's values", check.product("an image", height, width), 0,
                    index_bits == 32 ? kMostSetting : kNoLimit);
    }

    long values() const { return height * width; }
    long windows() const { return out_h * out_w; }
    // One window, the image itself: the global pooling at the end of a network.
    bool whole() const {
        return windows() == 1 && kernel_h == height && kernel_w == width && pad_h == 0 &&
               pad_w == 0;
    }
    // Windows side by side and two columns wide, none of which reaches beyond the image.
    bool in_twos() const {
        return kernel_w == 2 && stride_w == 2 && kernel_h <= stride_h && dilation_h == 1 &&
               dilation_w == 1 && pad_h == 0 && pad_w == 0;
    }
    // True if windows that do not overlap cover the whole image.
    bool gapless() const {
        return kernel_h == stride_h && kernel_w == stride_w && out_h * stride_h == height &&
               out_w * stride_w == width;
    }

    // For a kernel offset at column `shift`, the output positions [first, last) whose column is in
    // the image.
    long first_inside(long shift) const {
        return std::clamp((-shift + stride_w - 1) / stride_w, 0L, out_w);
    }
    long last_inside(long shift) const {
        return std::clamp((width - shift + stride_w - 1) / stride_w, 0L, out_w);
    }

    // visit(image row, column shift) for the kernel offsets of the j-th row of windows that lie
    // inside the image, in row-major order.
    template <class Visit>
    void for_each_offset_row(long j, const Visit& visit) const {
        for (long m = 0; m < kernel_h; m++) {
            const long y = j * stride_h + m * dilation_h - pad_h;
            if (y < 0 || y >= height) continue;
            if (kernel_w * out_w >= 4096) breathe();
            for (long n = 0; n < kernel_w; n++) visit(y, n * dilation_w - pad_w);
        }
    }
};

}  // namespace handgrad
