// Max pooling: the largest value of every window and where it was found.
#include <limits>

#include "core/binding.h"
#include "core/pooling.h"
#include "core/threads.h"

namespace handgrad {
namespace {

// One tap met by outputs [first, last) of a row: better values replace the best, NaN above all, and the
// first one whatever it is.
// A stride known to the compiler lets it load and compare whole vectors.
template <int kStride, class T>
void take_tap(const T* row, long stride, long first, long last, std::int32_t place, T* best,
              std::int32_t* winner) {
    const long step = kStride ? kStride : stride;
    for (long k = first; k < last; k++) {
        const T value = row[k * step];
        const bool larger = !(value <= best[k]) & (best[k] == best[k]);
        const bool better = larger | (winner[k] < 0);
        best[k] = better ? value : best[k];
        winner[k] = better ? place + static_cast<std::int32_t>(k * step) : winner[k];
    }
}

template <class T>
void max_pool2d_forward(In<T> x, Out<T> y, Out<std::int32_t> winner,
                        const std::vector<long>& sizes) {
    const Pooling pool(sizes);
    nb::gil_scoped_release release;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long plane = begin; plane < end; plane++) {
            const T* image = x.data() + plane * pool.values();
            for (long j = 0; j < pool.out_h; j++) {
                T* best = y.data() + plane * pool.windows() + j * pool.out_w;
                std::int32_t* places = winner.data() + plane * pool.windows() + j * pool.out_w;
                std::fill_n(best, pool.out_w, -std::numeric_limits<T>::infinity());
                std::fill_n(places, pool.out_w, -1);
                pool.for_each_tap_row(j, [&](long row, long shift) {
                    const long first = pool.first_inside(shift), last = pool.last_inside(shift);
                    const long at = row * pool.width + shift;
                    const auto place = static_cast<std::int32_t>(at);
                    auto take = pool.stride_w == 1   ? take_tap<1, T>
                                : pool.stride_w == 2 ? take_tap<2, T>
                                                     : take_tap<0, T>;
                    take(image + at, pool.stride_w, first, last, place, best, places);
                });
            }
        }
    });
}

template <class T>
void max_pool2d_backward(In<T> dy, In<std::int32_t> winner, Out<T> dx,
                         const std::vector<long>& sizes) {
    const Pooling pool(sizes);
    nb::gil_scoped_release release;
    parallel_for(pool.planes, std::max(1L, 8192 / (pool.values() + 1)), [&](long begin, long end) {
        for (long plane = begin; plane < end; plane++) {
            T* image = dx.data() + plane * pool.values();
            const T* gradient = dy.data() + plane * pool.windows();
            const std::int32_t* places = winner.data() + plane * pool.windows();
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
