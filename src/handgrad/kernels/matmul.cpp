// Matrix products: C = A B with any strides, single or in a batch.
#include "core/matmul.h"

#include "core/bf16.h"
#include "core/binding.h"

namespace handgrad {
namespace {

// c (batch, M, N) = a (batch, M, K) · b (batch, K, N); strides in values, for each operand
// (batch, row, column). A batch stride of 0 repeats the operand.
template <class T>
void matmul(In<T> a, In<T> b, Out<T> c, long batch, long rows, long columns, long depth,
            std::tuple<long, long, long> a_strides, std::tuple<long, long, long> b_strides) {
    const auto [a_batch, a_row, a_column] = a_strides;
    const auto [b_batch, b_row, b_column] = b_strides;
    const T* a_data = a.data();
    const T* b_data = b.data();
    T* c_data = c.data();
    auto one = [&](long n) {
        multiply_at_precision<T>(rows, columns, depth,
                                 StridedPack<T>{a_data + n * a_batch, a_row, a_column},
                                 StridedPack<T>{b_data + n * b_batch, b_column, b_row},
                                 WriteTile<T>{c_data + n * rows * columns, columns});
    };
    nb::gil_scoped_release release;
    if (batch == 1) {
        one(0);
    } else {
        parallel_for(batch, 1, [&](long begin, long end) {
            for (long n = begin; n < end; n++) one(n);
        });
    }
}

template <class T>
void bind_matmul(nb::module_& m) {
    m.def("matmul", &matmul<T>, "a"_a.noconvert(), "b"_a.noconvert(), "c"_a.noconvert(), "batch"_a,
          "rows"_a, "columns"_a, "depth"_a, "a_strides"_a, "b_strides"_a);
}

const Registrar registrar([](nb::module_& m) {
    bind_matmul<float>(m);
    bind_matmul<double>(m);
    m.attr("bf16_unit") = bf16_unit_name();
    m.def("set_precision_bf16", &set_precision_bf16, "on"_a);
});

}  // namespace
}  // namespace handgrad
