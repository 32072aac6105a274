// Convolution of images: forward, and backward in one sweep over the images.
#include "core/convolution.h"

#include "core/binding.h"
#include "core/epilogue.h"
#include "core/memory.h"

namespace handgrad {
namespace {

Convolution geometry(const std::vector<long>& g) {
    return {g[0], g[1], g[2],  g[3],  g[4],  g[5],  g[6],  g[7],
            g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]};
}

template <class T>
void conv2d_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, Out<T> y,
                    std::optional<Out<T>> saved, const std::vector<long>& sizes, int activation,
                    double slope) {
    const Convolution conv = geometry(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long positions = conv.positions(), filters = conv.group_filters();
    nb::gil_scoped_release release;
    with_activation<T>(activation, T(slope), [&](auto f) {
        parallel_for(conv.batch * conv.groups, 1, [&](long begin, long end) {
            for (long item = begin; item < end; item++) {
                const long group = item % conv.groups;
                const T* image = x.data() + item * conv.group_channels() * conv.height * conv.width;
                const long out = item * filters * positions;
                convolve_image(conv, lay_out(conv, image), taps.data(),
                               weight.data() + group * filters * conv.taps(), 0, positions,
                               ActivateTile<T, decltype(f), Bias::kRows>{
                                   f, y.data() + out, saved ? saved->data() + out : nullptr,
                                   positions, bias ? bias->data() + group * filters : nullptr});
            }
        });
    });
}

// How many images share one partial sum of dweight: a function of the sizes alone, so that the
// order of summation never depends on the threads.
long images_per_part(const Convolution& conv) {
    constexpr long kPartsMemory = 8 << 20;
    const long weight_bytes = conv.filters * conv.taps() * 8;
    const long parts = std::clamp(kPartsMemory / std::max(weight_bytes, 1L), 2L, 16L);
    return (conv.batch + parts - 1) / parts;
}

// dz = dy · f′ for one image, and its sums over the positions added to dbias.
template <class T, class F>
const T* activation_gradient_image(const F& f, const T* dy, const T* saved, T* dz, T* dbias,
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
    return dz - filters * positions;
}

template <class T>
void conv2d_backward(In<T> dy, In<T> x, In<T> weight, In<T> saved, std::optional<Out<T>> dx,
                     std::optional<Out<T>> dweight, std::optional<Out<T>> dbias,
                     const std::vector<long>& sizes, int activation, double slope) {
    const Convolution conv = geometry(sizes);
    const std::vector<long> taps = conv.tap_offsets();
    const long positions = conv.positions(), filters = conv.group_filters();
    const long image_values = conv.group_channels() * conv.height * conv.width;
    const long weight_values = conv.filters * conv.taps();
    const long images = images_per_part(conv);
    const long parts = images == 0 ? 0 : (conv.batch + images - 1) / images;
    const long part_values = weight_values + conv.filters;
    nb::gil_scoped_release release;
    const Temporary<T> sums(std::max(parts, 1L) * part_values);
    with_activation<T>(activation, T(slope), [&](auto f) {
        parallel_for(parts, 1, [&](long begin, long end) {
            for (long part = begin; part < end; part++) {
                T* part_dweight = sums.data() + part * part_values;
                T* part_dbias = part_dweight + weight_values;
                std::fill_n(part_dweight, part_values, T(0));
                const long last = std::min((part + 1) * images, conv.batch);
                for (long item = part * images * conv.groups; item < last * conv.groups; item++) {
                    const long group = item % conv.groups;
                    const long out = item * filters * positions;
                    const long kernel = group * filters * conv.taps();
                    T* dz = scratch<T>(Scratch::kRow, filters * positions);
                    activation_gradient_image(f, dy.data() + out, saved.data() + out, dz,
                                              part_dbias + group * filters, filters, positions);
                    if (dweight)
                        add_kernel_gradient(conv, lay_out(conv, x.data() + item * image_values),
                                            taps.data(), dz, part_dweight + kernel);
                    if (dx)
                        input_gradient_image(conv, taps.data(), weight.data() + kernel, dz,
                                             dx->data() + item * image_values);
                }
            }
        });
    });
    // The parts, summed in order.
    auto reduce = [&](T* target, long offset, long count) {
        parallel_for(count, 4096, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                T sum = T(0);
                for (long part = 0; part < parts; part++)
                    sum += sums.data()[part * part_values + offset + i];
                target[i] = sum;
            }
        });
    };
    if (dweight) reduce(dweight->data(), 0, weight_values);
    if (dbias) reduce(dbias->data(), weight_values, conv.filters);
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
