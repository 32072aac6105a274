// The finish of dense layers and convolutions: add the bias, apply the activation, write.
#pragma once

#include "core/activation.h"
#include "core/matmul.h"

namespace handgrad {

// What the bias belongs to: the columns of the tile (dense) or its rows (convolution).
enum class Bias { kColumns, kRows };

// y = f(tile + bias); `saved`, where given, receives the value before the activation.
template <class T, Bias kBias>
struct ActivateTile {
    int activation;
    double slope;
    T* y;
    T* saved;
    long stride;
    const T* bias;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        with_activation<T>(activation, slope, [&](auto f) {
            for (int c = 0; c < columns; c += kLanes<T>) {
                const int have = std::min(kLanes<T>, columns - c);
                Vec<T> b{};
                if (kBias == Bias::kColumns && bias != nullptr)
                    b = load_some(bias + column + c, have);
                for (int i = 0; i < rows; i++) {
                    if (kBias == Bias::kRows && bias != nullptr) b = splat(bias[row + i]);
                    const Vec<T> a = load(tile + i * width + c) + b;
                    const long at = (row + i) * stride + column + c;
                    put(y + at, f.value(a), have);
                    if (saved != nullptr) put(saved + at, a, have);
                }
            }
        });
    }

  private:
    static void put(T* target, Vec<T> v, int have) {
        if (have == kLanes<T>)
            store(target, v);
        else
            store_some(target, v, have);
    }
};

}  // namespace handgrad
