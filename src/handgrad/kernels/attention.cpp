// Attention; how is in core/attention/attention.h.
#include "core/attention/attention.h"

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/lengths.h"
#include "core/rowwise/rows.h"
#include "core/runtime/gil.h"
#include "core/runtime/memory.h"

namespace handgrad {
namespace {

using namespace attention;

// Sums of it and of numbers of keys or queries are no more than a long holds.
constexpr long kMostOffset = 1L << 61;

template <class T, class Y, class LogSums>
Call<T> call_of(const Check& check, const StridedIn<T>& q, const StridedIn<T>& k,
                const StridedIn<T>& v, const std::optional<StridedIn<T>>& bias,
                const std::optional<StridedIn<bool>>& mask, const std::optional<Indices>& lengths,
                const std::optional<StridedIn<bool>>& keep, double keep_scale, double scale,
                bool causal, long offset, const Y& y, const LogSums& log_sums) {
    Size n{"N"}, heads{"H"}, queries{"T"}, d{"d"}, groups{"G"}, keys{"S"}, values{"e"};
    check.shape("q", q, n, heads, queries, d);
    check.shape("k", k, n, groups, keys, d);
    check.shape("v", v, n, groups, keys, values);
    check.shape("y", y, n, heads, queries, values);
    check.shape("log_sums", log_sums, n, heads, queries);
    check.shape("bias", bias, n, heads, queries, keys);
    check.shape("mask", mask, n, heads, queries, keys);
    check.shape("keep", keep, n, heads, queries, keys);
    check.holds(heads == 0 || groups > 0, "G is 0", "a divisor of H");
    if (groups > 0) check.divides("G", groups, heads);
    check.rows_in_one_piece("q", q);
    check.rows_in_one_piece("k", k);
    check.rows_in_one_piece("v", v);
    check.rows_in_one_piece("y", y);
    if (keep) check.rows_in_one_piece("keep", *keep);
    check.range("offset", offset, -kMostOffset, kMostOffset);
    return {q.shape(0),
            q.shape(1),
            k.shape(1),
            q.shape(2),
            k.shape(2),
            q.shape(3),
            v.shape(3),
            T(scale),
            causal,
            offset,
            checked_lengths(lengths, q.shape(0), k.shape(2)),
            Heads<const T>(q),
            Heads<const T>(k),
            Heads<const T>(v),
            Heads<const T>(bias),
            Heads<const bool>(mask),
            Heads<const bool>(keep),
            T(keep_scale)};
}

// Calls body.operator()<Element>() with the type that operands hold at the precision in force. For
// a few queries, keys are read once and in place, and rounding would gain nothing.
template <class T, class Body>
void at_precision_of(const Call<T>& call, const Body& body) {
    if (call.queries <= kFewQueries) return body.template operator()<T>();
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(body);
}

template <class T>
void forward_few(const Call<T>& call, const Heads<T>& y, T* log_sums) {
    const long rows = call.batch * call.heads * call.queries;
    parallel_for(rows, rows_per_chunk(call.keys * call.features), [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long t = i % call.queries, h = i / call.queries % call.heads;
            const long n = i / call.queries / call.heads;
            forward_query(call, n, h, t, y.at(n, h, t), log_sums + i);
        }
    });
}

template <class T>
void attention_forward(StridedIn<T> q, StridedIn<T> k, StridedIn<T> v,
                       std::optional<StridedIn<T>> bias, std::optional<StridedIn<bool>> mask,
                       std::optional<Indices> lengths, std::optional<StridedIn<bool>> keep,
                       double keep_scale, double scale, bool causal, long offset, StridedOut<T> y,
                       Out<T> log_sums) {
    const Check check;
    const Call<T> call = call_of<T>(check, q, k, v, bias, mask, lengths, keep, keep_scale, scale,
                                    causal, offset, y, log_sums);
    if (log_sums.size() == 0) return;
    const Heads<T> rows(y);
    const KernelScope scope(log_sums.size() * call.keys);
    if (call.queries <= kFewQueries) return forward_few(call, rows, log_sums.data());
    at_precision_of(call, [&]<class Element>() {
        Pieces(call).run([&](const Piece& piece, long) {
            in_workspace<ForwardPiece<Element>>(call, piece).run(rows, log_sums.data());
        });
    });
}

// dK and dV of the pieces of one head, before they are added up: of each piece all rows of dK, then
// all of dV.
template <class T>
class PartialKeyGradients {
  public:
    PartialKeyGradients(const Call<T>& call, const Gradients<T>& to, const Pieces& pieces)
        : call_(call),
          to_(to),
          pieces_(pieces),
          k_size_(to.k.data != nullptr ? call.keys * call.features : 0),
          v_size_(to.v.data != nullptr ? call.keys * call.values : 0),
          memory_(alone() ? 0 : pieces.heads * pieces.per_head * (k_size_ + v_size_)) {}

    // The output of a piece: if it is the only one of its head, the gradients themselves.
    KeyGradients<T> k(const Piece& piece, long number) const {
        return target_of(to_.k, piece, partial(number), call_.features);
    }
    KeyGradients<T> v(const Piece& piece, long number) const {
        return target_of(to_.v, piece, partial(number) + k_size_, call_.values);
    }

    void add_up() const {
        if (alone()) return;
        const long rows = pieces_.heads * call_.keys;
        const long work = pieces_.per_head * (call_.features + call_.values);
        parallel_for(rows, rows_per_chunk(work), [&](long begin, long end) {
            for (long i = begin; i < end; i++) {
                const long head = i / call_.keys, key = i % call_.keys;
                const T* first = partial(head * pieces_.per_head);
                add(to_.k, head, key, first, call_.features);
                add(to_.v, head, key, first + k_size_, call_.values);
            }
        });
    }

  private:
    bool alone() const { return pieces_.per_head == 1; }
    T* partial(long number) const { return memory_.data() + number * (k_size_ + v_size_); }

    KeyGradients<T> target_of(const Heads<T>& to, const Piece& piece, T* partial,
                              long width) const {
        if (to.data == nullptr) return {nullptr, 0};
        return alone() ? KeyGradients<T>{to.at(piece.n, piece.group), to.row_stride}
                       : KeyGradients<T>{partial, width};
    }

    void add(const Heads<T>& to, long head, long key, const T* first, long width) const {
        if (to.data == nullptr) return;
        T* target = to.at(head / call_.groups, head % call_.groups, key);
        transform<T>(0, width, [&](auto lanes) {
            Vec<T> sum{};
            for (long p = 0; p < pieces_.per_head; p++)
                sum += lanes.load(first + p * (k_size_ + v_size_) + key * width);
            lanes.store(target, sum);
        });
    }

    const Call<T>& call_;
    const Gradients<T>& to_;
    const Pieces& pieces_;
    long k_size_, v_size_;
    Workspace<T> memory_;
};

template <class T>
void attention_backward(StridedIn<T> dy, StridedIn<T> q, StridedIn<T> k, StridedIn<T> v,
                        std::optional<StridedIn<T>> bias, std::optional<StridedIn<bool>> mask,
                        std::optional<Indices> lengths, std::optional<StridedIn<bool>> keep,
                        double keep_scale, double scale, bool causal, long offset, StridedIn<T> y,
                        In<T> log_sums, std::optional<StridedOut<T>> dq,
                        std::optional<StridedOut<T>> dk, std::optional<StridedOut<T>> dv,
                        std::optional<StridedOut<T>> dscores) {
    const Check check;
    const Call<T> call = call_of<T>(check, q, k, v, bias, mask, lengths, keep, keep_scale, scale,
                                    causal, offset, y, log_sums);
    const auto like = [&](const char* name, const auto& gradient, const auto& x) {
        if (!gradient) return;
        check.shape(name, gradient, x.shape(0), x.shape(1), x.shape(2), x.shape(3));
        check.rows_in_one_piece(name, *gradient);
    };
    like("dy", std::optional(dy), y);
    like("dq", dq, q);
    like("dk", dk, k);
    like("dv", dv, v);
    check.shape("dscores", dscores, call.batch, call.heads, call.queries, call.keys);
    if (dscores) check.rows_in_one_piece("dscores", *dscores);
    if (log_sums.size() == 0 && call.batch * call.groups * call.keys == 0) return;
    const Gradients<T> to{Heads<const T>(y), Heads<const T>(dy), log_sums.data(),  Heads<T>(dq),
                          Heads<T>(dk),      Heads<T>(dv),       Heads<T>(dscores)};
    const KernelScope scope(log_sums.size() * call.keys);
    const Pieces pieces(call);
    const PartialKeyGradients<T> partial_gradients(call, to, pieces);
    at_precision_of(call, [&]<class Element>() {
        pieces.run([&](const Piece& piece, long number) {
            in_workspace<BackwardPiece<Element>>(call, to, piece)
                .run(partial_gradients.k(piece, number), partial_gradients.v(piece, number));
        });
    });
    partial_gradients.add_up();
}

const KernelRegistrar registrars[] = {
    {"attention_forward", attention_forward<float>, attention_forward<double>},
    {"attention_backward", attention_backward<float>, attention_backward<double>},
};

}  // namespace
}  // namespace handgrad
