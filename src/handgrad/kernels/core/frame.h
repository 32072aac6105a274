// Images with zeros around them: the left operands of convolutions.
#pragma once

#include <algorithm>

#include "core/convolution_micro_kernels.h"
#include "core/simd.h"
#include "core/threads.h"

namespace handgrad {

// An image of some channels with zeros around it: `top` rows before, `left` columns before, and as
// many after as make up `rows` and `columns`. What lies beyond these is cut off. A row holds all
// channels one after the other, as a sum over taps runs through one row of all channels before it
// comes to the next; of each channel it holds the columns 0, step, 2 · step, ... side by side, then
// 1, 1 + step, ...: whoever moves by `step` columns finds neighbours.
struct Frame {
    long channels, height, width, top, left, rows, columns, step;

    bool in_place() const {
        return top == 0 && left == 0 && rows <= height && columns <= width && step == 1;
    }
    long run() const { return (columns + step - 1) / step; }
    long framed_width() const { return step * run(); }
    // How far apart two channels lie, and two rows of so many channels.
    long channel_step() const { return in_place() ? height * width : framed_width(); }
    long row_step(long planes) const { return in_place() ? width : planes * framed_width(); }
    long values() const {
        return in_place() ? channels * height * width : rows * row_step(channels);
    }
    // Where a column lies in its row.
    long at(long column) const { return column % step * run() + column / step; }
    // Whether any of the image is in this row.
    bool inside(long row) const { return row >= top && row < top + height; }
};

// One value of a plane of a kernel, and how far from a place it meets the framed image.
struct Tap {
    long index, row, column;
};

// The framed image; the image itself where there is nothing to add.
template <class T>
const T* framed(const Frame& frame, const T* image) {
    if (frame.in_place()) return image;
    T* target = thread_workspace<T>(WorkspaceSlot::kImage, frame.values());
    const long above = std::min(frame.top, frame.rows), left = std::min(frame.left, frame.columns);
    const long high = std::clamp(frame.rows - above, 0L, frame.height);
    const long wide = std::clamp(frame.columns - left, 0L, frame.width);
    const long step = frame.step, run = frame.run(), row_step = frame.row_step(frame.channels);
    T* inside = target + above * row_step;
    std::fill(target, inside, T(0));
    std::fill(inside + high * row_step, target + frame.values(), T(0));
    for (long c = 0; c < frame.channels; c++)
        for (long first = 0; first < step; first++) {
            const long before = std::max(left - first + step - 1, 0L) / step;
            const long x = first + before * step - left;
            const long count = std::max(wide - x + step - 1, 0L) / step;
            T* row = inside + c * frame.channel_step() + first * run;
            for (long i = 0; i < high; i++, row += row_step) {
                // The first channel is the first to touch all pages.
                if (i % 16 == 0) breathe();
                for (long k = 0; k < before; k++) row[k] = T(0);
                copy_strided(row + before, image + (c * frame.height + i) * frame.width + x, step,
                             count);
                for (long k = before + count; k < run; k++) row[k] = T(0);
            }
        }
    return target;
}

// How the operands of a product lie in a framed image. V is the type of a panel's values.
template <class V>
struct Operand {
    // Of so many channels, the planes that a sum over taps runs through.
    static long planes(long channels) { return channels; }
    static const V* for_taps(const Frame& frame, const V* image) { return framed(frame, image); }
    // For a sum over places.
    static const V* for_places(const Frame& frame, const V* image) { return framed(frame, image); }
    // The panel of `lanes` lanes from `lane` on, its terms the places; `matrix` has the values.
    static void pack_places(V* packed, const Places& places, int width,
                            const StridedPack<V>& matrix, long lane, int lanes) {
        matrix(packed, width, lane, lanes, 0, places.rows * places.columns);
    }
    // The panel that pack(values) writes, `plane` values for each channel.
    template <class Pack>
    static void pack_planes(V* packed, long, long, const Pack& pack) {
        pack(packed);
    }
};

// A sum over taps takes two channels at a time, whose values at one place are a pair; a sum over
// places takes neighbours, so there the image is rounded as it lies.
template <>
struct Operand<Bf16x2> {
    static long planes(long channels) { return (channels + 1) / 2; }
    static const Bf16x2* for_taps(const Frame& frame, const float* image) {
        const long rows = frame.in_place() ? 1 : frame.rows, channels = frame.channels;
        const long row = planes(channels) * frame.channel_step();
        const float* values = framed(frame, image);
        Bf16x2* elements = thread_workspace<Bf16x2>(WorkspaceSlot::kPanelA, rows * row);
        for (long i = 0; i < rows; i++)
            round_panel(elements + i * row, values + i * channels * frame.channel_step(),
                        frame.channel_step(), channels);
        return elements;
    }
    static const Bf16* for_places(const Frame& frame, const float* image) {
        Bf16* rounded = thread_workspace<Bf16>(WorkspaceSlot::kPanelA, frame.values());
        round_values(rounded, framed(frame, image), frame.values());
        return rounded;
    }
    // Every row of places starts a new pair; an even one does so by itself.
    static void pack_places(Bf16x2* packed, const Places& places, int width,
                            const StridedPack<float>& matrix, long lane, int lanes) {
        const bool even = places.columns % 2 == 0;
        const long rows = even ? 1 : places.rows;
        const long terms = even ? places.rows * places.columns : places.columns;
        for (long j = 0; j < rows; j++, packed += (terms + 1) / 2 * width)
            pack_bf16x2(packed, width, matrix, lane, lanes, j * terms, terms);
    }
    template <class Pack>
    static void pack_planes(Bf16x2* packed, long channels, long plane, const Pack& pack) {
        float* values = thread_workspace<float>(WorkspaceSlot::kPanelB, channels * plane);
        pack(values);
        round_panel(packed, values, plane, channels);
    }
};

}  // namespace handgrad
