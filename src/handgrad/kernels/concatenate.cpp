// Features of sequences, copied between arrays of other strides: a part of a concatenation.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// y = x, both (N, T, D) with a contiguous last axis.
template <class T>
void copy_features(StridedIn<T> x, StridedOut<T> y) {
    const Check check;
    Size batch{"N"}, time{"T"}, size{"D"};
    check.shape("x", x, batch, time, size);
    check.shape("y", y, batch, time, size);
    check.rows_in_one_piece("x", x);
    check.rows_in_one_piece("y", y);
    if (size == 0) return;
    const long steps = x.shape(1), width = x.shape(2), rows = x.shape(0) * steps;
    const WithoutGil unlocked(rows * width);
    parallel_for(rows, rows_per_chunk(width), [&](long begin, long end) {
        for (long row = begin; row < end; row++) {
            const long n = row / steps, t = row % steps;
            copy_values(y.data() + n * y.stride(0) + t * y.stride(1),
                        x.data() + n * x.stride(0) + t * x.stride(1), width);
        }
    });
}

const KernelRegistrar registrar("copy_features", copy_features<float>, copy_features<double>);

}  // namespace
}  // namespace handgrad
