// Embedding: y_n = W[token_n], and dW[v] = Σ dy_n over the n with token_n = v.
#include <algorithm>

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/indices.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"

namespace handgrad {
namespace {

template <class T>
void embedding_forward(Indices tokens, In<T> weight, Out<T> y) {
    const Check check;
    Size rows{"V"}, size{"D"};
    check.shape("weight", weight, rows, size);
    check.values("y", y, tokens.size(), size);
    const long width = size;
    check_indices(tokens, weight.shape(0));
    const KernelScope scope(y.size());
    parallel_for(tokens.size(), rows_per_chunk(width), [&](long begin, long end) {
        for (long n = begin; n < end; n++)
            std::copy_n(weight.data() + tokens.data()[n] * width, width, y.data() + n * width);
    });
}

// Sets dW, or adds to it where `more` says so. Each thread owns some rows of the table and looks
// through all tokens for them: a row is summed in the order of the tokens, whatever the threads.
template <class T>
void embedding_backward(In<T> dy, Indices tokens, Out<T> dweight, long padding, bool more) {
    const Check check;
    Size table{"V"}, size{"D"};
    check.shape("dweight", dweight, table, size);
    check.values("dy", dy, tokens.size(), size);
    const long rows = table, width = size;
    check_indices(tokens, rows);
    const KernelScope scope(dy.size() + dweight.size());
    constexpr long kMostParts = 16;
    const long chunk = std::max(rows_per_chunk(width), (rows + kMostParts - 1) / kMostParts);
    parallel_for(rows, chunk, [&](long begin, long end) {
        if (!more) std::fill(dweight.data() + begin * width, dweight.data() + end * width, T(0));
        for (long n = 0; n < tokens.size(); n++) {
            const long row = tokens.data()[n];
            if (row < begin || row >= end || row == padding) continue;
            T* target = dweight.data() + row * width;
            const T* source = dy.data() + n * width;
            transform<T>(0, width, [=](auto lanes) {
                lanes.store(target, lanes.load(target) + lanes.load(source));
            });
        }
    });
}

const KernelRegistrar registrars[] = {
    {"embedding_forward", embedding_forward<float>, embedding_forward<double>},
    {"embedding_backward", embedding_backward<float>, embedding_backward<double>},
};

}  // namespace
}  // namespace handgrad
