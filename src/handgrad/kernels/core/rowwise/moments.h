// Mean and variance of what lies in one piece or in several, for batch_norm and group_norm.
#pragma once

#include <algorithm>

#include "core/elementwise/elementwise.h"

namespace handgrad {

// Values that are summed in their own type, while they stay in the nearest cache.
constexpr long kBlock = 2048;

// The memory of the values of one channel: `count` pieces of `size` values, `stride` apart.
struct Planes {
    long count, size, stride;

    long values() const { return count * size; }

    template <class Body>
    void each_block(const Body& body) const {
        if (size == 0) return;
        for (long p = 0; p < count; p++)
            for (long at = 0; at < size; at += kBlock)
                body(p * stride + at, p * stride + std::min(at + kBlock, size));
    }

    // Last piece first, as a sweep has just left it in the cache.
    template <class T, class Body>
    void each_lanes_again(const Body& body) const {
        if (size == 0) return;
        for (long p = count - 1; p >= 0; p--) transform<T>(p * stride, p * stride + size, body);
    }
};

struct Moments {
    double mean = 0, variance = 0;
};

// One sweep: blocks are reduced to mean and squares around it, then put together.
// Source: Chan, Golub, LeVeque, Algorithms for computing the sample variance: analysis and
// recommendations (1983).
template <class T>
Moments moments(const T* x, const Planes& planes) {
    double count = 0, mean = 0, squares = 0;
    planes.each_block([&](long begin, long end) {
        const double size = static_cast<double>(end - begin);
        const T block_mean =
            reduce_sum<T>(begin, end, [=](auto lanes) { return lanes.load(x); }) / T(size);
        const auto [rest, block_squares] = reduce_sums<T, 2>(begin, end, [=](auto lanes) {
            const Vec<T> centred = lanes.load(x) - block_mean;
            return std::array<Vec<T>, 2>{centred, Vec<T>(centred * centred)};
        });
        // The rounding error of the block's mean is corrected.
        const double correction = double(rest) / size;
        const double delta = double(block_mean) + correction - mean;
        mean += delta * size / (count + size);
        squares += double(block_squares) - correction * double(rest) +
                   delta * delta * count * size / (count + size);
        count += size;
    });
    return {mean, count > 0 ? squares / count : 0.0};
}

}  // namespace handgrad
