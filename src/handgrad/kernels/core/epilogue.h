// The epilogue of dense layers: add the bias, apply the activation, add the residual, store.
#pragma once

#include "core/activation.h"
#include "core/matmul.h"

namespace handgrad {

// y = f(tile + bias) + residual; `saved` receives what f's gradient is computed from. All but y may
// be null. The next tile's values of the residual are prefetched while that tile is multiplied.
template <class T>
struct ActivationEpilogue {
    int activation;
    double slope;
    T* y;
    T* saved;
    long stride;
    const T* bias;
    const T* residual;
    bool large = false;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        apply(row, rows, column, columns, tile, width,
              [&](long at, Vec<T> h, int have, long) { put(y + at, h, have, large); });
    }
    // A store to `saved` leaves no time for a deferred one.
    void operator()(long row, int rows, long column, int columns, T* tile, int width,
                    DeferredStore<T>& deferred) const {
        if (!large || columns != width || saved != nullptr)
            return (*this)(row, rows, column, columns, tile, width);
        apply(row, rows, column, columns, tile, width,
              [&](long, Vec<T> h, int, long place) { store(tile + place, h); });
        deferred.defer(tile, rows, width, y + row * stride + column, stride);
    }

  private:
    // Calls write(offset in y, value, lanes, offset in the tile) for every vector.
    template <class Write>
    void apply(long row, int rows, long column, int columns, const T* tile, int width,
               const Write& write) const {
        with_activation<T>(activation, slope, [&](auto f) {
            for (int c = 0; c < columns; c += kLanes<T>) {
                const int have = std::min(kLanes<T>, columns - c);
                Vec<T> b{};
                if (bias != nullptr) b = masked_load(bias + column + c, have);
                for (int i = 0; i < rows; i++) {
                    const long place = i * width + c;
                    const Vec<T> a = load(tile + place) + b;
                    const long at = (row + i) * stride + column + c;
                    const Vec<T> h = f.value(a);
                    write(at, residual == nullptr ? h : Vec<T>(get(residual + at, have) + h), have,
                          place);
                    if (residual != nullptr) __builtin_prefetch(residual + at + width);
                    if (saved != nullptr) put(saved + at, f.kFromOutput ? h : a, have, large);
                }
            }
        });
    }

    static Vec<T> get(const T* source, int have) {
        return have == kLanes<T> ? load(source) : masked_load(source, have);
    }
};

}  // namespace handgrad
