// Max pooling: the largest value of every window and where it was found.
#include <limits>

#include "core/binding.h"
#include "core/pooling.h"
#include "core/simd.h"
#include "core/threads.h"

namespace handgrad {
namespace {

// Places are kept as integers as wide as the values, so that both fill the same lanes.
template <class T>
using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// One tap met by outputs [first, last) of a row: better values replace the best, NaN above all, and
// the first one whatever it is.
template <class T>
void take_tap(const T* row, long stride, long first, long last, long place, T* best,
              Place<T>* winner, Vec<Place<T>> numbers) {
    for (long k = first; k < last; k += kLanes<T>) {
        const long count = std::min<long>(kLanes<T>, last - k);
        const Vec<T> value = load_strided(row + k * stride, stride, count);
        const Vec<T> old = load_some(best + k, count);
        const Vec<Place<T>> old_place = load_some(winner + k, count);
        const Vec<Place<T>> here =
            static_cast<Place<T>>(place + k * stride) + static_cast<Place<T>>(stride) * numbers;
        const auto better = (~(value <= old) & (old == old)) | (old_place < 0);
        store_some(best + k, Vec<T>(better ? value : old), count);
        store_some(winner + k, Vec<Place<T>>(better ? here : old_place), count);
    }
}

template <class T>
void max_pool2d_forward(In<T> x, Out<T> y, Out<Place<T>> winner, const std::vector<long>& sizes) {
    const Pooling pool(sizes);
    Vec<Place<T>> numbers;
    for (int i = 0; i < kLanes<T>; i++) numbers[i] = i;
    nb::gil_scoped_release release;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long row = begin * pool.out_h; row < end * pool.out_h; row++) {
            const long plane = row / pool.out_h, j = row % pool.out_h;
            const T* image = x.data() + plane * pool.values();
            T* best = y.data() + row * pool.out_w;
            Place<T>* places = winner.data() + row * pool.out_w;
            std::fill_n(best, pool.out_w, -std::numeric_limits<T>::infinity());
            std::fill_n(places, pool.out_w, -1);
            pool.for_each_tap_row(j, [&](long y, long shift) {
                const long at = y * pool.width + shift;
                take_tap(image + at, pool.stride_w, pool.first_inside(shift),
                         pool.last_inside(shift), at, best, places, numbers);
            });
        }
    });
}

template <class T>
void max_pool2d_backward(In<T> dy, In<Place<T>> winner, Out<T> dx,
                         const std::vector<long>& sizes) {
    const Pooling pool(sizes);
    nb::gil_scoped_release release;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long plane = begin; plane < end; plane++) {
            T* image = dx.data() + plane * pool.values();
            const T* gradient = dy.data() + plane * pool.windows();
            const Place<T>* places = winner.data() + plane * pool.windows();
            std::fill_n(image, pool.values(), T(0));
            for (long i = 0; i < pool.windows(); i++) image[places[i]] += gradient[i];
        }
    });
}

template <class T>
void bind(nb::module_& m) {
    m.def("max_pool2d_forward", &max_pool2d_forward<T>, "x"_a.noconvert(), "y"_a.noconvert(),
          "winner"_a.noconvert(), "sizes"_a);
    m.def("max_pool2d_backward", &max_pool2d_backward<T>, "dy"_a.noconvert(),
          "winner"_a.noconvert(), "dx"_a.noconvert(), "sizes"_a);
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
