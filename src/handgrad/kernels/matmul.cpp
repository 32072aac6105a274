// Matrix products: C = A B with any strides, single or in a batch.
#include "core/gemm/matmul.h"

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/gemm/bf16.h"
#include "core/gemm/vector_product.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
struct Matrix {
    const T* data;
    long batch_stride, row_stride, column_stride;

    Matrix transposed() const { return {data, batch_stride, column_stride, row_stride}; }
};

// True if C has a single row, and a and b can be read as they lie: in bf16 they are rounded as they
// are packed.
template <class T>
bool is_vector_product(long rows, long k, const Matrix<T>& a, const Matrix<T>& b) {
    return rows == 1 && (a.column_stride == 1 || k == 1) &&
           (b.row_stride == 1 || b.column_stride == 1) &&
           !(std::is_same_v<T, float> && precision_bf16());
}

// c (batch, N) = a (batch, 1, K) · b (batch, K, N).
template <class T>
void multiply_vectors(const Matrix<T>& a, const Matrix<T>& b, T* c, long batch, long columns,
                      long k) {
    const long block = lanes_per_thread<T>(k);
    const long blocks = (columns + block - 1) / block;
    const long chunk = std::max(4 * kChunk / (std::min(block, columns) * k + 1), 1L);
    parallel_for(batch * blocks, chunk, [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long n = i / blocks, lane = i % blocks * block;
            const VectorProduct<T> product{a.data + n * a.batch_stride, b.data + n * b.batch_stride,
                                           k, b.row_stride, b.column_stride};
            product(c + n * columns, lane, std::min(lane + block, columns));
        }
    });
}

template <class T>
Matrix<T> matrix(const StridedIn<T>& x) {
    const int axes = static_cast<int>(x.ndim());
    return {x.data(), axes == 3 ? x.stride(0) : 0, x.stride(axes - 2), x.stride(axes - 1)};
}

// c (batch, M, N) = a (batch, M, K) · b (batch, K, N), or all three without the batch's axis.
template <class T>
void matmul(StridedIn<T> a, StridedIn<T> b, Out<T> c) {
    const Check check;
    Size matrices{"batch"}, m{"M"}, inner{"K"}, n{"N"};
    if (c.ndim() == 3) {
        check.shape("c", c, matrices, m, n);
        check.shape("a", a, matrices, m, inner);
        check.shape("b", b, matrices, inner, n);
    } else {
        check.shape("c", c, m, n);
        check.shape("a", a, m, inner);
        check.shape("b", b, inner, n);
    }
    if (c.size() == 0) return;
    const int axes = static_cast<int>(c.ndim());
    const long batch = axes == 3 ? c.shape(0) : 1;
    const long rows = c.shape(axes - 2), columns = c.shape(axes - 1);
    const long k = a.shape(static_cast<int>(a.ndim()) - 1);
    const Matrix<T> left = matrix(a), right = matrix(b);
    const Matrix<T> left_t = left.transposed(), right_t = right.transposed();
    T* c_data = c.data();
    auto one = [&](long n) {
        multiply_at_precision<T>(
            rows, columns, k,
            StridedPack<T>{left.data + n * left.batch_stride, left.row_stride, left.column_stride},
            StridedPack<T>{right.data + n * right.batch_stride, right.column_stride,
                           right.row_stride},
            StoreEpilogue<T>{c_data + n * rows * columns, columns, outgrows_caches<T>(c.size())});
    };
    const KernelScope scope;
    if (is_vector_product(rows, k, left, right)) {
        multiply_vectors(left, right, c_data, batch, columns, k);
    } else if (is_vector_product(columns, k, right_t, left_t)) {
        multiply_vectors(right_t, left_t, c_data, batch, rows, k);
    } else if (batch == 1) {
        one(0);
    } else {
        parallel_for(batch, 1, [&](long begin, long end) {
            for (long n = begin; n < end; n++) one(n);
        });
    }
}

const KernelRegistrar registrar("matmul", matmul<float>, matmul<double>);
const Registrar unit_registrar([](nb::module_& m) { m.attr("bf16_unit") = bf16_unit_name(); });

}  // namespace
}  // namespace handgrad
