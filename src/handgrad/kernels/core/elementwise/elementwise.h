// Loops over arrays, a vector at a time and in parallel chunks.
//
// A body is called with `lanes`: a full vector at some index, or the tail of the row. It loads and
// stores through it, and so is written once for both:
//     parallel_transform<T>(count, [=](auto lanes) { lanes.store(y, exp(lanes.load(x))); });
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/runtime/threads.h"
#include "core/simd/simd.h"

namespace handgrad {

// Values that are worth handing to another thread; also what one sum adds up by itself.
constexpr long kChunk = 1 << 15;

template <class T>
struct FullVector {
    long at;
    Vec<T> load(const T* p, T = T(0)) const { return handgrad::load(p + at); }
    void store(T* p, Vec<T> v) const { handgrad::store(p + at, v); }
    void stream(T* p, Vec<T> v) const { handgrad::stream(p + at, v); }
    Vec<T> zero_tail(Vec<T> v) const { return v; }
};

template <class T>
struct Tail {
    long at, count;
    // `fill` stands for the lanes beyond the tail.
    Vec<T> load(const T* p, T fill = T(0)) const { return masked_load(p + at, count, fill); }
    void store(T* p, Vec<T> v) const { masked_store(p + at, v, count); }
    void stream(T* p, Vec<T> v) const { store(p, v); }
    // The lanes of the tail, and 0 in the others.
    Vec<T> zero_tail(Vec<T> v) const { return lane_numbers<T>() < T(count) ? v : Vec<T>{}; }
};

// body(lanes) over [begin, end) on this thread.
template <class T, class Body>
void transform(long begin, long end, const Body& body) {
    long at = begin;
    for (; at + kLanes<T> <= end; at += kLanes<T>) body(FullVector<T>{at});
    if (at < end) body(Tail<T>{at, end - at});
}

// body(lanes) over [0, count), in parallel where that is worth it.
template <class T, class Body>
void parallel_transform(long count, const Body& body) {
    parallel_for(count, kChunk, [&](long begin, long end) { transform<T>(begin, end, body); });
}

// K sums at once over [begin, end): term(lanes) returns an array of K vectors. The order is always
// the same: a vector to each of four accumulators in turn, then these two by two, then the lanes
// two by two.
template <class T, int K, class Term>
std::array<T, K> reduce_sums(long begin, long end, const Term& term) {
    constexpr int n = kLanes<T>;
    Vec<T> accumulated[4][K] = {};
    auto add = [&](int accumulator, auto lanes) {
        const std::array<Vec<T>, K> terms = term(lanes);
        for (int k = 0; k < K; k++) accumulated[accumulator][k] += lanes.zero_tail(terms[k]);
    };
    long at = begin;
    for (; at + 4 * n <= end; at += 4 * n) {
        add(0, FullVector<T>{at});
        add(1, FullVector<T>{at + n});
        add(2, FullVector<T>{at + 2 * n});
        add(3, FullVector<T>{at + 3 * n});
    }
    for (; at + n <= end; at += n) add(0, FullVector<T>{at});
    if (at < end) add(1, Tail<T>{at, end - at});
    std::array<T, K> totals;
    for (int k = 0; k < K; k++)
        totals[k] = lane_sum(Vec<T>((accumulated[0][k] + accumulated[1][k]) +
                                    (accumulated[2][k] + accumulated[3][k])));
    return totals;
}

// One sum over [begin, end) on this thread; term(lanes) is a vector.
template <class T, class Term>
T reduce_sum(long begin, long end, const Term& term) {
    return reduce_sums<T, 1>(begin, end,
                             [&](auto lanes) { return std::array<Vec<T>, 1>{term(lanes)}; })[0];
}

template <class T>
T reduce_max(const T* values, long count) {
    constexpr T kLowest = -std::numeric_limits<T>::infinity();
    Vec<T> best = splat(kLowest);
    transform<T>(0, count, [&](auto lanes) { best = maximum(lanes.load(values, kLowest), best); });
    return lane_max(best);
}

// A sum over all of a long array, in parallel: each chunk by itself, then the chunks in order.
template <class T, class Term>
double parallel_reduce_sum(long count, const Term& term) {
    if (count <= kChunk) return static_cast<double>(reduce_sum<T>(0, count, term));
    std::vector<double> parts(static_cast<std::size_t>((count + kChunk - 1) / kChunk));
    parallel_for(count, kChunk, [&](long begin, long end) {
        parts[static_cast<std::size_t>(begin / kChunk)] =
            static_cast<double>(reduce_sum<T>(begin, end, term));
    });
    double result = 0;
    for (const double part : parts) result += part;
    return result;
}

}  // namespace handgrad
