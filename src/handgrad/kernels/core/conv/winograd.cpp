#include "core/conv/winograd.h"

#include "core/binding/binding.h"

namespace handgrad {
namespace {

int choice = kAutomatic;

// The vectors of multiply-adds that one image and group cost in one pass, transforms included.
template <int M>
double winograd_cost(const Convolution& conv) {
    using Tiles = WinogradTiles<M>;
    const double channels = double(conv.group_channels()), filters = double(conv.group_filters());
    const Tiles tiles(conv.out_h, conv.out_w, conv.group_channels());
    const double vectors = double((tiles.down * tiles.across + kLanes<float> - 1) / kLanes<float>);
    // Measured: to gather and transform one vector of each product of one channel takes as long as
    // so many multiply-adds, and so does the way back; the kernels are transformed once a batch.
    constexpr double kTransform = 8;
    const double kernels = kTransform * channels * filters / kLanes<float> / double(conv.batch);
    return Tiles::kProducts *
           ((channels * filters + kTransform * (channels + filters)) * vectors + kernels);
}

double offsets_cost(const Convolution& conv) {
    return 9.0 * double(conv.group_channels()) * double(conv.output_values()) / kLanes<float>;
}

const Registrar registrar([](nb::module_& m) {
    m.def("set_winograd", [](int tile) { choice = tile; }, "tile"_a);
});

}  // namespace

int winograd_tile(const Convolution& conv) {
    const bool fits = conv.kernel_h == 3 && conv.kernel_w == 3 && conv.stride_h == 1 &&
                      conv.stride_w == 1 && conv.dilation_h == 1 && conv.dilation_w == 1 &&
                      conv.pad_h <= 2 && conv.pad_w <= 2 && conv.batch > 0 &&
                      conv.output_values() > 0 && conv.image_values() > 0;
    if (!fits || choice == kNever) return 0;
    if (choice != kAutomatic) return choice;
    // The sums of the kernel gradient are kept for each product: beyond so many values, memory.
    constexpr long kMostKernels = 256 * 256;
    if (conv.group_channels() * conv.group_filters() > kMostKernels) return 0;
    const double two = winograd_cost<2>(conv), four = winograd_cost<4>(conv);
    const double least = std::min(two, four);
    if (least > 0.8 * offsets_cost(conv)) return 0;
    return two < four ? 2 : 4;
}

}  // namespace handgrad
