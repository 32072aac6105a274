#include "core/gemm/epilogue.h"

namespace handgrad {

template <class T>
void ActivationEpilogue<T>::operator()(long row, int rows, long column, int columns, const T* tile,
                                       int width) const {
    apply(row, rows, column, columns, tile, width, y + row * stride + column, stride, large);
}

// A store to `saved` leaves no time for a deferred one.
template <class T>
void ActivationEpilogue<T>::operator()(long row, int rows, long column, int columns, T* tile,
                                       int width, DeferredStore<T>& deferred) const {
    if (!large || columns != width || saved != nullptr)
        return (*this)(row, rows, column, columns, tile, width);
    apply(row, rows, column, columns, tile, width, tile, width, false);
    deferred.defer(tile, rows, width, y + row * stride + column, stride);
}

// The values of the tile to the rows of the target, by non-temporal stores if they are `streamed`.
template <class T>
void ActivationEpilogue<T>::apply(long row, int rows, long column, int columns, const T* tile,
                                  int width, T* target, long target_stride, bool streamed) const {
    with_activation<T>(activation, slope, [&](auto f) {
        for (int c = 0; c < columns; c += kLanes<T>) {
            const int have = std::min(kLanes<T>, columns - c);
            const auto get = [&](const T* source) {
                return have == kLanes<T> ? load(source) : masked_load(source, have);
            };
            Vec<T> b{};
            if (bias != nullptr) b = masked_load(bias + column + c, have);
            for (int i = 0; i < rows; i++) {
                const Vec<T> a = load(tile + i * width + c) + b;
                const long at = (row + i) * stride + column + c;
                const Vec<T> h = f.value(a);
                put(target + i * target_stride + c,
                    residual == nullptr ? h : Vec<T>(get(residual + at) + h), have, streamed);
                if (residual != nullptr) __builtin_prefetch(residual + at + width);
                if (saved != nullptr) put(saved + at, f.kFromOutput ? h : a, have, large);
            }
        }
    });
}

template struct ActivationEpilogue<float>;
template struct ActivationEpilogue<double>;

}  // namespace handgrad
