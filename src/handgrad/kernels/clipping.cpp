// The sum of squares behind a global norm, in float64 and in one order whatever the threads.
#include "core/binding/kernel.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
double sum_of_squares(In<T> values) {
    const KernelScope scope(values.size());
    const long parts = (values.size() + kChunk - 1) / kChunk;
    std::vector<double> squares(static_cast<std::size_t>(parts));
    parallel_for(parts, 1, [&](long begin, long end) {
        for (long part = begin; part < end; part++) {
            const T* x = values.data() + part * kChunk;
            const long count = std::min(kChunk, values.size() - part * kChunk);
            constexpr int n = kLanes<double>;
            Vec<double> sums[2] = {};
            long i = 0;
            for (; i + 2 * n <= count; i += 2 * n)
                for (int k = 0; k < 2; k++) {
                    Vec<double> v;
                    for (int l = 0; l < n; l++) v[l] = static_cast<double>(x[i + k * n + l]);
                    sums[k] += v * v;
                }
            double sum = lane_sum(Vec<double>(sums[0] + sums[1]));
            for (; i < count; i++) sum += double(x[i]) * double(x[i]);
            squares[static_cast<std::size_t>(part)] = sum;
        }
    });
    double sum = 0;
    for (const double part : squares) sum += part;
    return sum;
}

const KernelRegistrar registrar("sum_of_squares", sum_of_squares<float>, sum_of_squares<double>);

}  // namespace
}  // namespace handgrad
