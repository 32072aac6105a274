// The epilogue of dense layers: add the bias, apply the activation, add the residual, store.
#pragma once

#include "core/elementwise/activation.h"
#include "core/gemm/matmul.h"

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

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const;
    void operator()(long row, int rows, long column, int columns, T* tile, int width,
                    DeferredStore<T>& deferred) const;

  private:
    void apply(long row, int rows, long column, int columns, const T* tile, int width, T* target,
               long target_stride, bool streamed) const;
};

}  // namespace handgrad
