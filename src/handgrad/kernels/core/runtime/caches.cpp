#include "core/runtime/caches.h"

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/gemm/matmul.h"

namespace handgrad {
namespace {

Caches known;

const Registrar registrar([](nb::module_& m) {
    m.def(
        "set_caches",
        [](long l1_bytes, long l1_ways, long l2_bytes, long line) {
            const Check check("set_caches");
            for (const long size : {l1_bytes, l1_ways, l2_bytes, line})
                check.range("a size", size, 1, 1L << 40);
            known = {{l1_bytes, l1_ways}, {l2_bytes, 8}, line};
        },
        "l1_bytes"_a, "l1_ways"_a, "l2_bytes"_a, "line"_a);
    // MR, NR, KC, MC and NC of float32 products, for `handgrad info` and benchmarks.
    m.def("block_sizes", [] {
        constexpr long size = sizeof(float);
        const long kc = kPrefersPackedA ? packed_kc(kMR, kNR<float>, size) : largest_kc(kMR, size);
        return nb::make_tuple(kMR, kNR<float>, kc, mc_bytes() / (kc * size),
                              nc_bytes() / (kc * size));
    });
    // A product's plan by its names, for `python -m benchmarks.model`.
    m.def(
        "plan_product",
        [](long rows, long columns, long k) {
            const Check check("plan_product");
            for (const long size : {rows, columns, k}) check.range("a size", size, 1, 1L << 31);
            const ProductPlan plan = plan_product(rows, columns, k);
            nb::dict found;
            found["transposed"] = plan.transposed;
            found["a_in_place"] = plan.a_in_place;
            found["pack_a_once"] = plan.pack_a_once;
            found["pack_b_once"] = plan.pack_b_once;
            found["kc"] = plan.kc;
            found["nc"] = plan.nc;
            found["down"] = plan.down;
            found["across"] = plan.across;
            return found;
        },
        "rows"_a, "columns"_a, "k"_a);
});

}  // namespace

const Caches& caches() { return known; }

}  // namespace handgrad
