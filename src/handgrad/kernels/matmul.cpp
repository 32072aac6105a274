// Matrix products: C = A B with any strides, single or in a batch.
#include "core/matmul.h"

#include "core/bf16.h"
#include "core/binding.h"
#include "core/rows.h"
#include "core/vector_product.h"

namespace handgrad {
namespace {

template <class T>
struct Matrix {
    const T* data;
    long batch_stride, row_stride, column_stride;

    Matrix transposed() const { return {data, batch_stride, column_stride, row_stride}; }
};

// Whether C is a vector, or one for each of the batch, and a (1, K) b can go without packing. In
// bf16 operands are rounded as they are packed.
template <class T>
bool is_vector_product(long rows, long depth, const Matrix<T>& a, const Matrix<T>& b) {
    return rows == 1 && (a.column_stride == 1 || depth == 1) &&
           (b.row_stride == 1 || b.column_stride == 1) &&
           !(std::is_same_v<T, float> && precision_bf16());
}

// c (batch, N) = a (batch, 1, K) · b (batch, K, N).
template <class T>
void multiply_vectors(const Matrix<T>& a, const Matrix<T>& b, T* c, long batch, long columns,
                      long depth) {
    // Lanes that are worth handing to another thread: whole vectors.
    const long block = std::max(rows_per_chunk(depth) / kLanes<T>, 1L) * kLanes<T>;
    const long blocks = (columns + block - 1) / block;
    const long values = std::min(block, columns) * depth;
    parallel_for(batch * blocks, rows_per_chunk(values), [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long n = i / blocks, lane = i % blocks * block;
            const VectorProduct<T> product{a.data + n * a.batch_stride, b.data + n * b.batch_stride,
                                           depth, b.row_stride, b.column_stride};
            product(c + n * columns, lane, std::min(lane + block, columns));
        }
    });
}

template <class T>
Matrix<T> matrix(In<T> memory, std::tuple<long, long, long> strides) {
    const auto [batch, row, column] = strides;
    return {memory.data(), batch, row, column};
}

// c (batch, M, N) = a (batch, M, K) · b (batch, K, N); strides in values, for each operand
// (batch, row, column). A batch stride of 0 repeats the operand.
template <class T>
void matmul(In<T> a, In<T> b, Out<T> c, long batch, long rows, long columns, long depth,
            std::tuple<long, long, long> a_strides, std::tuple<long, long, long> b_strides) {
    const Matrix<T> left = matrix(a, a_strides), right = matrix(b, b_strides);
    const Matrix<T> left_t = left.transposed(), right_t = right.transposed();
    T* c_data = c.data();
    auto one = [&](long n) {
        multiply_at_precision<T>(
            rows, columns, depth,
            StridedPack<T>{left.data + n * left.batch_stride, left.row_stride, left.column_stride},
            StridedPack<T>{right.data + n * right.batch_stride, right.column_stride,
                           right.row_stride},
            WriteTile<T>{c_data + n * rows * columns, columns});
    };
    nb::gil_scoped_release release;
    if (is_vector_product(rows, depth, left, right)) {
        multiply_vectors(left, right, c_data, batch, columns, depth);
    } else if (is_vector_product(columns, depth, right_t, left_t)) {
        multiply_vectors(right_t, left_t, c_data, batch, rows, depth);
    } else if (batch == 1) {
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
