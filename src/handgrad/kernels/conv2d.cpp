// Convolution of images: forward, and backward in one sweep over the images.
#include "core/binding/binding.h"
#include "core/conv/convolution.h"
#include "core/conv/winograd.h"
#include "core/elementwise/activation.h"
#include "core/elementwise/elementwise.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

// The epilogue of the forward pass: lanes are filters.
template <class T>
struct ConvolutionEpilogue {
    int activation;
    double slope;
    T* y;
    T* saved;
    const T* bias;
    long out_w, positions;

    template <class Row>
    void operator()(long j, long lane, const Row& row) const {
        with_activation<T>(activation, slope, [&](auto f) {
            row.for_each_lane([&](int l, long p, long count, Vec<T> v) {
                const long filter = lane + l, at = filter * positions + j * out_w + p;
                const Vec<T> a = bias == nullptr ? v : v + bias[filter];
                masked_store(y + at, f.value(a), count);
                if (saved != nullptr) masked_store(saved + at, a, count);
            });
        });
    }
};

// An image for each thread where there are enough, else rows of outputs, `step` of them at least:
// each part is padded anew.
long parts_of_image(const Convolution& conv, long step) {
    constexpr long kWork = 1 << 20;  // multiply-adds that are worth handing to another thread
    const long images = conv.batch * conv.groups;
    if (images == 0 || images >= get_threads()) return 1;
    const long worth = conv.output_values() * conv.patch_size() / kWork;
    return std::clamp(std::min(worth, conv.out_h / step), 1L, get_threads() / images);
}

// Calls body with the algorithm that sums up this convolution: a panel element, or the M of
// Winograd's tiles.
template <class T, class Sums, class Tiles>
void with_algorithm(const Convolution& conv, const Sums& sums, const Tiles& tiles) {
    if constexpr (std::is_same_v<T, float> && !kFallback) {
        const int m = precision_bf16() ? 0 : winograd_tile(conv);
        if (m == 2) return tiles.template operator()<2>();
        if (m == 4) return tiles.template operator()<4>();
    }
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, AmxBf16x2>>(sums);
}

template <class T>
void conv2d_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, Out<T> y,
                    std::optional<Out<T>> saved, const ConvolutionSizes& sizes, int activation,
                    double slope) {
    const Check check;
    const Convolution conv = checked_convolution(check, sizes, "x", x, weight, "y", y);
    check.shape("bias", bias, conv.filters);
    check.values("saved", saved, y.size());
    check.range("activation", activation, 0, kLastActivation);
    if (y.size() == 0) return;
    const KernelScope scope;
    const auto run = [&](const auto& forward, long step) {
        const long parts = parts_of_image(conv, step), steps = (conv.out_h + step - 1) / step;
        parallel_for(conv.batch * conv.groups * parts, 1, [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long item = i / parts, part = i % parts;
                const Range rows{part * steps / parts * step,
                                 std::min((part + 1) * steps / parts * step, conv.out_h)};
                const long group = item % conv.groups, out = item * conv.output_values();
                const ConvolutionEpilogue<T> epilogue{
                    activation,
                    slope,
                    y.data() + out,
                    saved ? saved->data() + out : nullptr,
                    bias ? bias->data() + group * conv.group_filters() : nullptr,
                    conv.out_w,
                    conv.positions()};
                forward.run(x.data() + item * conv.image_values(), group, rows, epilogue);
            }
        });
    };
    with_algorithm<T>(
        conv, [&]<class V>() { run(Forward<V>(conv, weight.data()), 1); },
        [&]<int M>() { run(winograd_forward<M>(conv, weight.data()), M); });
}

// dz = dy · f′ for one image, where `dz` is given, and its sums over the positions added to dbias.
// Without an activation dy itself stands for what was saved.
template <class T>
void activation_gradient_image(int activation, double slope, const T* dy, const T* saved, T* dz,
                               T* dbias, long filters, long positions) {
    with_activation<T>(activation, slope, [&](auto f) {
        for (long i = 0; i < filters; i++) {
            breathe();
            Vec<T> sum{};
            // Beyond the last position dy is loaded as 0, and so is its gradient.
            transform<T>(i * positions, (i + 1) * positions, [&](auto lanes) {
                const Vec<T> g = f.gradient(lanes.load(dy), lanes.load(saved));
                if (dz != nullptr) lanes.store(dz, g);
                sum += g;
            });
            dbias[i] += lane_sum(sum);
        }
    });
}

template <class T>
void conv2d_backward(In<T> dy, In<T> x, In<T> weight, std::optional<In<T>> saved,
                     std::optional<Out<T>> dx, std::optional<Out<T>> dweight,
                     std::optional<Out<T>> dbias, const ConvolutionSizes& sizes, int activation,
                     double slope) {
    const Check check;
    const Convolution conv = checked_convolution(check, sizes, "x", x, weight, "dy", dy);
    check.values("saved", saved, dy.size());
    check.values("dx", dx, x.size());
    check.values("dweight", dweight, weight.size());
    check.shape("dbias", dbias, conv.filters);
    check.range("activation", activation, 0, kLastActivation);
    check.holds(saved || activation == 0, "saved is None", "an array where there is an activation");
    const KernelScope scope;
    const auto run = [&](const auto& kernel_gradient, const auto& input_gradient) {
        const long group_values = kernel_gradient.values();
        const long bias_at = conv.groups * group_values;
        const BatchSums<T> sums(conv, bias_at + conv.filters);
        const bool identity = activation == static_cast<int>(Activation::kIdentity);
        const T* kept = saved ? saved->data() : dy.data();
        const T* total = sums.run([&](long item, T* part) {
            const long group = item % conv.groups, out = item * conv.output_values();
            const long image = item * conv.image_values();
            T* own =
                identity ? nullptr : thread_workspace<T>(WorkspaceSlot::kRow, conv.output_values());
            const T* dz = identity ? dy.data() + out : own;
            if (!identity || dbias)
                activation_gradient_image(activation, slope, dy.data() + out, kept + out, own,
                                          part + bias_at + group * conv.group_filters(),
                                          conv.group_filters(), conv.positions());
            if (dweight) kernel_gradient.add(x.data() + image, dz, part + group * group_values);
            if (dx)
                input_gradient->run(
                    dz, group, StoreLanes<T>{dx->data() + image, conv.height, conv.width, nullptr});
        });
        if (dweight) write_kernel_gradient(conv, kernel_gradient, total, dweight->data());
        if (dbias) std::copy_n(total + bias_at, conv.filters, dbias->data());
    };
    with_algorithm<T>(
        conv,
        [&]<class V>() {
            std::optional<InputGradient<V>> input_gradient;
            if (dx) input_gradient.emplace(conv, weight.data());
            run(KernelGradient<V>(conv), input_gradient);
        },
        [&]<int M>() {
            std::optional<WinogradInputGradient<M>> input_gradient;
            if (dx) input_gradient.emplace(conv, weight.data());
            run(WinogradKernelGradient<M>(conv), input_gradient);
        });
}

const KernelRegistrar registrars[] = {
    {"conv2d_forward", conv2d_forward<float>, conv2d_forward<double>},
    {"conv2d_backward", conv2d_backward<float>, conv2d_backward<double>},
};

}  // namespace
}  // namespace handgrad
