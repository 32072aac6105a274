// The finish of dense layers: add the bias, apply the activation, write.
#pragma once

#include "core/activation.h"
#include "core/matmul.h"

namespace handgrad {

// y = f(tile + bias); `saved`, where given, receives the value before the activation.
template <class T>
struct ActivateTile {
    int activation;
    double slope;
    T* y;
    T* saved;
    long stride;
    const T* bias;
    bool large = false;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        with_activation<T>(activation, slope, [&](auto f) {
            for (int c = 0; c < columns; c += kLanes<T>) {
                const int have = std::min(kLanes<T>, columns - c);
                Vec<T> b{};
                if (bias != nullptr) b = load_some(bias + column + c, have);
                for (int i = 0; i < rows; i++) {
                    const Vec<T> a = load(tile + i * width + c) + b;
                    const long at = (row + i) * stride + column + c;
                    put(y + at, f.value(a), have);
                    if (saved != nullptr) put(saved + at, a, have);
                }
            }
        });
    }

  private:
    void put(T* target, Vec<T> v, int have) const {
        if (have < kLanes<T>)
            store_some(target, v, have);
        else if (large)
            stream(target, v);
        else
            store(target, v);
    }
};

}  // namespace handgrad
