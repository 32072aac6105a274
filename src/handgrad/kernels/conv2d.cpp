// Convolution of images: forward, and backward in one sweep over the images.
#include "core/convolution.h"

#include "core/binding.h"
#include "core/epilogue.h"

namespace handgrad {
namespace {

template <class T>
void conv2d_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, Out<T> y,
                    std::optional<Out<T>> saved, const std::vector<long>& sizes, int activation,
                    double slope) {
    const Convolution conv = convolution_of(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long positions = conv.positions(), filters = conv.group_filters();
    nb::gil_scoped_release release;
    parallel_for(conv.batch * conv.groups, 1, [&](long begin, long end) {
        for (long item = begin; item < end; item++) {
            const long group = item % conv.groups;
            const T* image = x.data() + item * conv.group_channels() * conv.height * conv.width;
            const long out = item * filters * positions;
            const T* kernel = weight.data() + group * filters * conv.taps();
            convolve_image(conv, taps.data(), image, kernel, [&](long first) {
                return ActivateTile<T, Bias::kRows>{activation,
                                                    slope,
                                                    y.data() + out + first,
                                                    saved ? saved->data() + out + first : nullptr,
                                                    positions,
                                                    bias ? bias->data() + group * filters : nullptr};
            });
        }
    });
}

// dz = dy · f′ for one image, and its sums over the positions added to dbias.
template <class T, class F>
void activation_gradient_image(const F& f, const T* dy, const T* saved, T* dz, T* dbias,
                                   long filters, long positions) {
    for (long i = 0; i < filters; i++, dy += positions, saved += positions, dz += positions) {
        Vec<T> sum{};
        for (long p = 0; p < positions; p += kLanes<T>) {
            const long have = std::min<long>(kLanes<T>, positions - p);
            const Vec<T> g = f.gradient(load_some(dy + p, have), load_some(saved + p, have));
            store_some(dz + p, g, have);
            sum += have == kLanes<T> ? g : load_some(dz + p, have);
        }
        dbias[i] += lane_sum(sum);
    }
}

template <class T>
void conv2d_backward(In<T> dy, In<T> x, In<T> weight, In<T> saved, std::optional<Out<T>> dx,
                     std::optional<Out<T>> dweight, std::optional<Out<T>> dbias,
                     const std::vector<long>& sizes, int activation, double slope) {
    const Convolution conv = convolution_of(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long positions = conv.positions(), filters = conv.group_filters();
    const long image_values = conv.group_channels() * conv.height * conv.width;
    const long weight_values = conv.filters * conv.taps();
    nb::gil_scoped_release release;
    const BatchSums<T> sums(conv, weight_values + conv.filters);
    sums.run([&](long item, T* part) {
        const long group = item % conv.groups;
        const long out = item * filters * positions;
        const long kernel = group * filters * conv.taps();
        T* dz = scratch<T>(Scratch::kRow, filters * positions);
        with_activation<T>(activation, slope, [&](auto f) {
            activation_gradient_image(f, dy.data() + out, saved.data() + out, dz,
                                      part + weight_values + group * filters, filters, positions);
        });
        if (dweight)
            add_kernel_gradient(conv, taps.data(), x.data() + item * image_values, dz,
                                part + kernel);
        if (dx)
            input_gradient_image(conv, taps.data(), weight.data() + kernel, dz,
                                 dx->data() + item * image_values);
    });
    if (dweight) sums.write(dweight->data(), 0, weight_values);
    if (dbias) sums.write(dbias->data(), weight_values, conv.filters);
}

template <class T>
void bind(nb::module_& m) {
    m.def("conv2d_forward", &conv2d_forward<T>, "x"_a.noconvert(), "weight"_a.noconvert(),
          "bias"_a.noconvert().none(), "y"_a.noconvert(), "saved"_a.noconvert().none(), "sizes"_a,
          "activation"_a, "slope"_a);
    m.def("conv2d_backward", &conv2d_backward<T>, "dy"_a.noconvert(), "x"_a.noconvert(),
          "weight"_a.noconvert(), "saved"_a.noconvert(), "dx"_a.noconvert().none(),
          "dweight"_a.noconvert().none(), "dbias"_a.noconvert().none(), "sizes"_a, "activation"_a,
          "slope"_a);
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
