// Images with zeros around them: the left operands of convolutions.
#pragma once

#include <algorithm>

#include "core/conv/convolution_micro_kernels.h"
#include "core/runtime/threads.h"
#include "core/simd/simd.h"

namespace handgrad {

// An image of some channels with zeros around it: `top` rows before, `left` columns before, and as
// many after as make up `rows` and `columns`. The part beyond these is cut off. A row holds all
// channels one after the other, as a sum over kernel offsets runs through one row of all channels
// before it comes to the next; of each channel it holds the columns 0, step, 2 · step, ... side by
// side, then 1, 1 + step, ...: columns `step` apart are neighbours.
struct PaddedInput {
    long channels, height, width, top, left, rows, columns, step;

    bool in_place() const {
        return top == 0 && left == 0 && rows <= height && columns <= width && step == 1;
    }
    long run() const { return (columns + step - 1) / step; }
    long padded_width() const { return step * run(); }
    // The distance of two channels, and of two rows of so many channels.
    long channel_step() const { return in_place() ? height * width : padded_width(); }
    long row_step(long planes) const { return in_place() ? width : planes * padded_width(); }
    long values() const {
        return in_place() ? channels * height * width : rows * row_step(channels);
    }
    // The index of a column in its row.
    long at(long column) const { return column % step * run() + column / step; }
    // True if any of the image is in this row.
    bool inside(long row) const { return row >= top && row < top + height; }
};

// One value of a plane of a kernel, and the distance from a position to the value of the padded
// input that it is multiplied with.
struct KernelOffset {
    long index, row, column;
};

// The padded input; the image itself if there is nothing to add.
template <class T>
const T* pad(const PaddedInput& padded, const T* image) {
    if (padded.in_place()) return image;
    T* target = thread_workspace<T>(WorkspaceSlot::kImage, padded.values());
    const long above = std::min(padded.top, padded.rows),
               left = std::min(padded.left, padded.columns);
    const long high = std::clamp(padded.rows - above, 0L, padded.height);
    const long wide = std::clamp(padded.columns - left, 0L, padded.width);
    const long step = padded.step, run = padded.run(), row_step = padded.row_step(padded.channels);
    T* inside = target + above * row_step;
    std::fill(target, inside, T(0));
    std::fill(inside + high * row_step, target + padded.values(), T(0));
    for (long c = 0; c < padded.channels; c++)
        for (long first = 0; first < step; first++) {
            const long before = std::max(left - first + step - 1, 0L) / step;
            const long x = first + before * step - left;
            const long count = std::max(wide - x + step - 1, 0L) / step;
            T* row = inside + c * padded.channel_step() + first * run;
            for (long i = 0; i < high; i++, row += row_step) {
                // The first channel is the first to touch all pages.
                if (i % 16 == 0) breathe();
                for (long k = 0; k < before; k++) row[k] = T(0);
                copy_strided(row + before, image + (c * padded.height + i) * padded.width + x, step,
                             count);
                for (long k = before + count; k < run; k++) row[k] = T(0);
            }
        }
    return target;
}

// The layout of the operands of a product in a padded input. V is the panel element.
template <class V>
struct Operand {
    // The planes that a sum over kernel offsets runs through, for so many channels.
    static long planes(long channels) { return channels; }
    static const V* for_offsets(const PaddedInput& padded, const V* image) {
        return pad(padded, image);
    }
    // The same for a sum over positions.
    static const V* for_positions(const PaddedInput& padded, const V* image) {
        return pad(padded, image);
    }
    // Packs the micro-panel of `lanes` lanes from `lane` on, whose k are the positions; `matrix`
    // has the values.
    static void pack_positions(V* packed, const Positions& positions, int width,
                               const StridedPack<V>& matrix, long lane, int lanes) {
        matrix(packed, width, lane, lanes, 0, positions.rows * positions.columns);
    }
    // Packs the micro-panel that pack(values) writes, `plane` values for each channel.
    template <class Pack>
    static void pack_planes(V* packed, long, long, const Pack& pack) {
        pack(packed);
    }
};

// A sum over kernel offsets takes two channels at a time, whose values at one position are a
// Bf16x2; a sum over positions takes neighbours, so there the image is rounded as it lies.
template <>
struct Operand<Bf16x2> {
    static long planes(long channels) { return (channels + 1) / 2; }
    static const Bf16x2* for_offsets(const PaddedInput& padded, const float* image) {
        const long rows = padded.in_place() ? 1 : padded.rows, channels = padded.channels;
        const long row = planes(channels) * padded.channel_step();
        const float* values = pad(padded, image);
        Bf16x2* elements = thread_workspace<Bf16x2>(WorkspaceSlot::kPanelA, rows * row);
        for (long i = 0; i < rows; i++)
            round_panel(elements + i * row, values + i * channels * padded.channel_step(),
                        padded.channel_step(), channels);
        return elements;
    }
    static const Bf16* for_positions(const PaddedInput& padded, const float* image) {
        // The micro-kernel reads two at a time, in the end one beyond the last.
        Bf16* rounded = thread_workspace<Bf16>(WorkspaceSlot::kPanelA, padded.values() + 1);
        round_values(rounded, pad(padded, image), padded.values());
        return rounded;
    }
    // Every row of positions starts a new element; an even one does so by itself.
    static void pack_positions(Bf16x2* packed, const Positions& positions, int width,
                               const StridedPack<float>& matrix, long lane, int lanes) {
        const bool even = positions.columns % 2 == 0;
        const long rows = even ? 1 : positions.rows;
        const long terms = even ? positions.rows * positions.columns : positions.columns;
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
