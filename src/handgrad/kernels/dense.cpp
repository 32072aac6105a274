// Dense: h = f(x Wᵀ + b) and its three gradients, each one tiled product.
#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/gemm/bf16.h"
#include "core/gemm/epilogue.h"
#include "core/gemm/vector_product.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"
#include "core/runtime/memory.h"

namespace handgrad {
namespace {

template <class T>
void dense_forward(In<T> x, In<T> weight, std::optional<In<T>> bias, std::optional<In<T>> residual,
                   Out<T> y, std::optional<Out<T>> saved, int activation, double slope) {
    const Check check;
    Size n{"N"}, c{"C"}, d{"D"};
    check.shape("weight", weight, c, d);
    check.shape("x", x, several(n), d);
    check.shape("y", y, several(n), c);
    check.shape("bias", bias, c);
    check.values("residual", residual, n, c);
    check.values("saved", saved, n, c);
    check.range("activation", activation, 0, kLastActivation);
    const long outputs = c, inputs = d, rows = n;
    if (y.size() == 0) return;
    const KernelScope scope;
    const ActivationEpilogue<T> epilogue{activation,
                                         slope,
                                         y.data(),
                                         data_or_null(saved),
                                         outputs,
                                         data_or_null(bias),
                                         data_or_null(residual),
                                         outgrows_caches<T>(rows * outputs)};
    // In bf16 operands are rounded as they are packed.
    if (rows == 1 && !(std::is_same_v<T, float> && precision_bf16())) {
        const long width = (outputs + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
        const Workspace<T> sums(width);
        multiply_vector(VectorProduct<T>{x.data(), weight.data(), inputs, 1, inputs}, sums.data(),
                        outputs);
        epilogue(0, 1, 0, static_cast<int>(outputs), sums.data(), static_cast<int>(width));
        return;
    }
    multiply_at_precision<T>(rows, outputs, inputs, StridedPack<T>{x.data(), inputs, 1},
                             StridedPack<T>{weight.data(), inputs, 1}, epilogue);
}

// da = dh · f′ and db = Σ da over the rows, in one sweep. A large one goes row by row, as rows lie
// in memory: down the columns of 2048 × 1536 values it took 3 ns a value, most of it waiting for
// pages. A small one goes down its columns and needs no memory for the sums of parts.
template <class T, class F>
void activation_gradient_rows(const F& f, const T* dh, const T* saved, T* da, T* db, long rows,
                              long outputs) {
    constexpr int n = kLanes<T>;
    if (rows * outputs > 50000) {
        const RowSums<T> parts(rows, outputs, db != nullptr ? outputs : 0);
        parts.run([=](long row, T* sums) {
            const long at = row * outputs;
            transform<T>(0, outputs, [=](auto lanes) {
                const Vec<T> g = f.gradient(lanes.load(dh + at), lanes.load(saved + at));
                if (da != nullptr) lanes.store(da + at, g);
                if (db != nullptr) lanes.store(sums, lanes.load(sums) + g);
            });
        });
        if (db != nullptr) parts.write(db, 0, outputs);
        return;
    }
    for (long column = 0; column < outputs; column += n) {
        const int have = static_cast<int>(std::min<long>(n, outputs - column));
        Vec<T> sum{};
        for (long row = 0; row < rows; row++) {
            const long at = row * outputs + column;
            const Vec<T> g = f.gradient(masked_load(dh + at, have), masked_load(saved + at, have));
            if (da != nullptr) masked_store(da + at, g, have);
            sum += g;
        }
        if (db != nullptr) masked_store(db + column, sum, have);
    }
}

template <class T>
void dense_backward(In<T> dh, In<T> x, In<T> weight, std::optional<In<T>> saved,
                    std::optional<In<T>> residual, std::optional<Out<T>> dx,
                    std::optional<Out<T>> dweight, std::optional<Out<T>> dbias, int activation,
                    double slope) {
    const Check check;
    Size n{"N"}, c{"C"}, d{"D"};
    check.shape("weight", weight, c, d);
    check.shape("x", x, several(n), d);
    check.shape("dh", dh, several(n), c);
    check.values("saved", saved, n, c);
    check.values("residual", residual, n, d);
    check.values("dx", dx, n, d);
    check.shape("dweight", dweight, c, d);
    check.shape("dbias", dbias, c);
    check.range("activation", activation, 0, kLastActivation);
    check.holds(saved || activation == 0, "saved is None", "an array where there is an activation");
    const long outputs = c, inputs = d, rows = n;
    constexpr int kIdentity = static_cast<int>(Activation::kIdentity);
    const bool identity = activation == kIdentity;
    const KernelScope scope;
    const Workspace<T> own(identity ? 0 : rows * outputs);
    const T* da = identity ? dh.data() : own.data();
    if (!identity || dbias)
        with_activation<T>(activation, slope, [&](auto f) {
            // The identity reads nothing that was saved.
            activation_gradient_rows(f, dh.data(), saved ? saved->data() : dh.data(),
                                     identity ? nullptr : own.data(),
                                     dbias ? dbias->data() : nullptr, rows, outputs);
        });
    if (dx)
        multiply_at_precision<T>(
            rows, inputs, outputs, StridedPack<T>{da, outputs, 1},
            StridedPack<T>{weight.data(), 1, inputs},
            ActivationEpilogue<T>{kIdentity, 0, dx->data(), nullptr, inputs, nullptr,
                                  data_or_null(residual), outgrows_caches<T>(rows * inputs)});
    if (dweight)
        multiply_at_precision<T>(
            outputs, inputs, rows, StridedPack<T>{da, 1, outputs},
            StridedPack<T>{x.data(), 1, inputs},
            StoreEpilogue<T>{dweight->data(), inputs, outgrows_caches<T>(outputs * inputs)});
}

const KernelRegistrar registrars[] = {
    {"dense_forward", dense_forward<float>, dense_forward<double>},
    {"dense_backward", dense_backward<float>, dense_backward<double>},
};

}  // namespace
}  // namespace handgrad
