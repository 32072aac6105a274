// The windows of a convolution or a pooling along one axis, as their settings place them.
#pragma once

#include <algorithm>

#include "core/binding/check.h"

namespace handgrad {

// As geometry/windows.py has it.
constexpr long kMostSetting = (1L << 31) - 1;
// An axis without values may have as many positions as a long holds; no sum of it and settings is
// beyond one.
constexpr long kMostPositions = 1L << 60;

// The windows of one axis lie in the padded image, and no product of its settings is beyond a long.
inline void check_windows(const Check& check, long size, long kernel, long stride, long padding,
                          long dilation, long outputs) {
    check.range("an axis", size, 0, kMostPositions);
    check.range("kernel", kernel, 1);
    check.range("stride", stride, 1, kMostSetting);
    check.range("dilation", dilation, 1, kMostSetting);
    check.range("padding", padding, 0, kMostSetting);
    const long last = check.product("the windows", std::max(outputs - 1, 0L), stride);
    const long reach = check.product("the kernel", kernel - 1, dilation);
    check.holds(
        outputs == 0 || (reach <= size + 2 * padding - 1 && last <= size + 2 * padding - 1 - reach),
        "windows reach beyond the padded image", "outputs whose windows lie in it");
}

}  // namespace handgrad
