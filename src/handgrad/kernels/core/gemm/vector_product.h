// A vector times a matrix, y = x B: every value of B is read once, so nothing is worth packing.
//
// A value of y is summed in one order, whatever stands beside it and whichever thread has it.
#pragma once

#include "core/elementwise/elementwise.h"

namespace handgrad {

// B has value (p, lane) at data[p · k_stride + lane · lane_stride]. One stride is 1; x is in one
// piece.
template <class T>
struct VectorProduct {
    const T* x;
    const T* data;
    long k, k_stride, lane_stride;

    // y[lane] for the lanes of [begin, end).
    void operator()(T* y, long begin, long end) const {
        if (lane_stride == 1)
            down(y, begin, end);
        else
            for (long lane = begin; lane < end; lane += kLanes<T>)
                along(y + lane, lane, std::min<long>(kLanes<T>, end - lane));
    }

  private:
    // Lanes side by side: a row of B at a time, as many vectors of it as there are sums in reach.
    void down(T* y, long begin, long end) const {
        constexpr long kWide = 8 * kLanes<T>;
        long lane = begin;
        for (; lane + kWide <= end; lane += kWide) {
            Vec<T> sums[8] = {};
            for (long p = 0; p < k; p++)
                for (int v = 0; v < 8; v++)
                    sums[v] += x[p] * load(data + p * k_stride + lane + v * kLanes<T>);
            for (int v = 0; v < 8; v++) store(y + lane + v * kLanes<T>, sums[v]);
        }
        transform<T>(lane, end, [&](auto lanes) {
            Vec<T> sum{};
            for (long p = 0; p < k; p++) sum += x[p] * lanes.load(data + p * k_stride);
            lanes.store(y, sum);
        });
    }

    // Values along k side by side: as many lanes at a time as a vector has, whose vectors of sums
    // are then transposed and added, so that no lane needs a sum over a vector.
    void along(T* y, long lane, long have) const {
        constexpr int n = kLanes<T>;
        const T* rows[n];
        for (int l = 0; l < n; l++)
            rows[l] = data + (lane + std::min<long>(l, have - 1)) * lane_stride;
        Vec<T> sums[n] = {};
        transform<T>(0, k, [&](auto lanes) {
            const Vec<T> factor = lanes.load(x);
            for (int l = 0; l < n; l++) sums[l] += factor * lanes.load(rows[l]);
        });
        transpose<T>(sums);
        for (int half = n / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++) sums[l] += sums[l + half];
        if (have == n)
            store(y, sums[0]);
        else
            masked_store(y, sums[0], have);
    }
};

// Lanes of a product with a matrix of `k` rows that are worth handing to another thread: it has to
// fetch their values first.
template <class T>
long lanes_per_thread(long k) {
    return std::max(4 * kChunk / (k + 1) / kLanes<T>, 1L) * kLanes<T>;
}

// y for all lanes.
template <class T>
void multiply_vector(const VectorProduct<T>& product, T* y, long lanes) {
    const long block = lanes_per_thread<T>(product.k);
    parallel_for((lanes + block - 1) / block, 1, [&](long begin, long end) {
        product(y, begin * block, std::min(end * block, lanes));
    });
}

}  // namespace handgrad
