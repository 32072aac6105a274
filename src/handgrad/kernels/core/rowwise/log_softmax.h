// log softmax of a row by two numbers: log p = x − highest − log_sum.
#pragma once

#include <cmath>

#include "core/elementwise/elementwise.h"
#include "core/simd/vectormath.h"

namespace handgrad {

template <class T>
void log_softmax_row(const T* x, long classes, T& highest, T& log_sum) {
    const T best = highest = reduce_max(x, classes);
    log_sum = std::log(reduce_sum<T>(
        0, classes, [=](auto lanes) { return exp(Vec<T>(lanes.load(x, best) - best)); }));
}

}  // namespace handgrad
