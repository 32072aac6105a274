// Rotary positions: pairs of features (i, i + d/2) turned by an angle, or turned back.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// y (N, H, T, d), with any strides of the leading axes, from x and the cosines and sines (T, d/2).
template <class T>
void rotary(StridedIn<T> x, In<T> cos, In<T> sin, StridedOut<T> y, bool back) {
    const Check check;
    Size n{"N"}, h{"H"}, t{"T"}, d{"d"};
    check.shape("x", x, n, h, t, d);
    check.shape("y", y, n, h, t, d);
    check.rows_in_one_piece("x", x);
    check.rows_in_one_piece("y", y);
    check.divides("2", 2, d);
    check.shape("cos", cos, t, d / 2);
    check.shape("sin", sin, t, d / 2);
    if (d == 0) return;
    const long heads = x.shape(1), steps = x.shape(2), half = x.shape(3) / 2;
    const long rows = x.shape(0) * heads * steps;
    const KernelScope scope(rows * half);
    parallel_for(rows, rows_per_chunk(2 * half), [&](long begin, long end) {
        for (long row = begin; row < end; row++) {
            const long t = row % steps, h = row / steps % heads, n = row / steps / heads;
            const auto at = [&](const auto& array) {
                return array.data() + n * array.stride(0) + h * array.stride(1) +
                       t * array.stride(2);
            };
            const T *first = at(x), *second = first + half;
            T *first_out = at(y), *second_out = first_out + half;
            transform<T>(0, half, [&](auto lanes) {
                const Vec<T> a = lanes.load(first), b = lanes.load(second);
                const Vec<T> c = lanes.load(cos.data() + t * half);
                const Vec<T> turn = lanes.load(sin.data() + t * half);
                const Vec<T> s = back ? Vec<T>(-turn) : turn;
                lanes.store(first_out, a * c - b * s);
                lanes.store(second_out, b * c + a * s);
            });
        }
    });
}

const KernelRegistrar registrar("rotary", rotary<float>, rotary<double>);

}  // namespace
}  // namespace handgrad
