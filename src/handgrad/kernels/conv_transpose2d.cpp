// Transposed convolution: the input gradient of a convolution as the forward pass. In its geometry
// y is the image and x the output; see core/convolution.h.
#include "core/binding.h"
#include "core/convolution.h"

namespace handgrad {
namespace {

template <class T>
void conv_transpose2d_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, Out<T> y,
                              const std::vector<long>& sizes) {
    const Convolution conv = convolution_of(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long plane = conv.height * conv.width, channels = conv.group_channels();
    const long filters = conv.group_filters();
    nb::gil_scoped_release release;
    parallel_for(conv.batch * conv.groups, 1, [&](long begin, long end) {
        for (long item = begin; item < end; item++) {
            const long group = item % conv.groups;
            T* image = y.data() + item * channels * plane;
            input_gradient_image(conv, taps.data(), weight.data() + group * filters * conv.taps(),
                                 x.data() + item * filters * conv.positions(), image);
            if (!bias) continue;
            for (long c = 0; c < channels; c++) {
                const T b = bias->data()[group * channels + c];
                for (long i = 0; i < plane; i++) image[c * plane + i] += b;
            }
        }
    });
}

template <class T>
void conv_transpose2d_backward(In<T> dy, In<T> x, In<T> weight, std::optional<Out<T>> dx,
                               std::optional<Out<T>> dweight, std::optional<Out<T>> dbias,
                               const std::vector<long>& sizes) {
    const Convolution conv = convolution_of(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long plane = conv.height * conv.width, channels = conv.group_channels();
    const long positions = conv.positions(), filters = conv.group_filters();
    const long weight_values = conv.filters * conv.taps();
    nb::gil_scoped_release release;
    const BatchSums<T> sums(conv, weight_values + conv.channels);
    sums.run([&](long item, T* part) {
        const long group = item % conv.groups;
        const long kernel = group * filters * conv.taps();
        const long in = item * filters * positions;
        const T* image = dy.data() + item * channels * plane;
        if (dx)
            convolve_image(conv, taps.data(), image, weight.data() + kernel, [&](long first) {
                return WriteTile<T>{dx->data() + in + first, positions};
            });
        if (dweight)
            add_kernel_gradient(conv, taps.data(), image, x.data() + in, part + kernel);
        for (long c = 0; c < channels; c++) {
            T sum = T(0);
            for (long i = 0; i < plane; i++) sum += image[c * plane + i];
            part[weight_values + group * channels + c] += sum;
        }
    });
    if (dweight) sums.write(dweight->data(), 0, weight_values);
    if (dbias) sums.write(dbias->data(), weight_values, conv.channels);
}

template <class T>
void bind(nb::module_& m) {
    m.def("conv_transpose2d_forward", &conv_transpose2d_forward<T>, "x"_a.noconvert(),
          "weight"_a.noconvert(), "bias"_a.noconvert().none(), "y"_a.noconvert(), "sizes"_a);
    m.def("conv_transpose2d_backward", &conv_transpose2d_backward<T>, "dy"_a.noconvert(),
          "x"_a.noconvert(), "weight"_a.noconvert(), "dx"_a.noconvert().none(),
          "dweight"_a.noconvert().none(), "dbias"_a.noconvert().none(), "sizes"_a);
}

const Registrar registrar([](nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
});

}  // namespace
}  // namespace handgrad
