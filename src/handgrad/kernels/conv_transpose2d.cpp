// Transposed convolution: the input gradient of a convolution as the forward pass. In its geometry
// y is the image and x the output; see core/conv/convolution.h.
#include "core/binding/binding.h"
#include "core/conv/convolution.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
void conv_transpose2d_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, Out<T> y,
                              const ConvolutionSizes& sizes) {
    const Check check;
    const Convolution conv = checked_convolution(check, sizes, "y", y, weight, "x", x);
    check.shape("bias", bias, conv.channels);
    const KernelScope scope;
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, AmxBf16x2>>([&]<class V>() {
        const InputGradient<V> input_gradient(conv, weight.data());
        parallel_for(conv.batch * conv.groups, 1, [&](long begin, long end) {
            for (long item = begin; item < end; item++) {
                const long group = item % conv.groups;
                const T* b = bias ? bias->data() + group * conv.group_channels() : nullptr;
                input_gradient.run(x.data() + item * conv.output_values(), group,
                                   StoreLanes<T>{y.data() + item * conv.image_values(), conv.height,
                                                 conv.width, b});
            }
        });
    });
}

template <class T>
void conv_transpose2d_backward(In<T> dy, In<T> x, In<T> weight, std::optional<Out<T>> dx,
                               std::optional<Out<T>> dweight, std::optional<Out<T>> dbias,
                               const ConvolutionSizes& sizes) {
    const Check check;
    const Convolution conv = checked_convolution(check, sizes, "dy", dy, weight, "x", x);
    check.values("dx", dx, x.size());
    check.values("dweight", dweight, weight.size());
    check.shape("dbias", dbias, conv.channels);
    const long plane = conv.height * conv.width, channels = conv.group_channels();
    const KernelScope scope;
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, AmxBf16x2>>([&]<class V>() {
        const Forward<V> forward(conv, weight.data());
        const KernelGradient<V> kernel_gradient(conv);
        const long group_values = kernel_gradient.values();
        const long bias_at = conv.groups * group_values;
        const BatchSums<T> sums(conv, bias_at + conv.channels);
        const T* total = sums.run([&](long item, T* part) {
            const long group = item % conv.groups, in = item * conv.output_values();
            const T* image = dy.data() + item * conv.image_values();
            if (dx) {
                const StoreLanes<T> write{dx->data() + in, conv.out_h, conv.out_w, nullptr};
                forward.run(image, group, {0, conv.out_h},
                            [&](long j, long lane, const auto& row) { write(j, 0, 1, lane, row); });
            }
            if (dweight) kernel_gradient.add(image, x.data() + in, part + group * group_values);
            for (long c = 0; c < channels; c++) {
                T sum = T(0);
                for (long i = 0; i < plane; i++) sum += image[c * plane + i];
                part[bias_at + group * channels + c] += sum;
            }
        });
        if (dweight) write_kernel_gradient(conv, kernel_gradient, total, dweight->data());
        if (dbias) std::copy_n(total + bias_at, conv.channels, dbias->data());
    });
}

const KernelRegistrar registrars[] = {
    {"conv_transpose2d_forward", conv_transpose2d_forward<float>, conv_transpose2d_forward<double>},
    {"conv_transpose2d_backward", conv_transpose2d_backward<float>,
     conv_transpose2d_backward<double>},
};

}  // namespace
}  // namespace handgrad
