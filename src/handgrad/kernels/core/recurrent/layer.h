// The inputs of a recurrent op, and the outputs of its gradients.
#pragma once

#include "core/binding/binding.h"
#include "core/binding/check.h"
#include "core/binding/lengths.h"
#include "core/elementwise/elementwise.h"
#include "core/recurrent/sequences.h"

namespace handgrad::recurrence {

template <class T>
using Given = std::optional<In<T>>;

// The sizes of an op: sequences, steps and features of x, hidden units, gates of all slabs, and
// values in h, fewer than hidden units with a projection.
struct LayerSizes {
    Size batch{"N"}, steps{"T"}, features{"D"}, gates{"G"}, hidden{"H"}, size{"P"};
};

// Throws unless these arrays fit together.
template <class T>
LayerSizes checked_layer(const Check& check, long slabs, const In<T>& x, const In<T>& weight_ih,
                         const Given<T>& weight_hh, const Given<T>& weight_hr,
                         const Given<T>& bias_ih, const Given<T>& bias_hh, const Given<T>& h0) {
    LayerSizes sizes;
    check.shape("x", x, sizes.batch, sizes.steps, sizes.features);
    check.shape("weight_ih", weight_ih, sizes.gates, sizes.features);
    check.divides("the number of gates", slabs, sizes.gates);
    sizes.hidden.value = sizes.gates / slabs;
    if (weight_hr)
        check.shape("weight_hr", weight_hr, sizes.size, sizes.hidden);
    else
        sizes.size.value = sizes.hidden;
    check.shape("weight_hh", weight_hh, sizes.gates, sizes.size);
    check.shape("bias_ih", bias_ih, sizes.gates);
    check.shape("bias_hh", bias_hh, sizes.gates);
    check.shape("h0", h0, sizes.batch, sizes.size);
    return sizes;
}

// The inputs of an op. H hidden units, and P values in h, fewer with a projection weight_hr (P, H);
// weight_hh, weight_hr and what is optional may be null.
template <class T>
struct Inputs {
    const T* x;  // (N, T, D)
    long features;
    const T* weight_ih;  // (slabs · H, D)
    const T* weight_hh;  // (slabs · H, P)
    const T* weight_hr;
    const T* bias_ih;
    const T* bias_hh;
    const T* h0;
    long hidden, size;
    T* y;  // (N, T, P), 0 for padding: also h of every step

    Inputs(long slabs, const In<T>& x, const In<T>& weight_ih, const Given<T>& weight_hh,
           const Given<T>& weight_hr, const Given<T>& bias_ih, const Given<T>& bias_hh,
           const Given<T>& h0, T* y)
        : x(x.data()),
          features(x.shape(2)),
          weight_ih(weight_ih.data()),
          weight_hh(data_or_null(weight_hh)),
          weight_hr(data_or_null(weight_hr)),
          bias_ih(data_or_null(bias_ih)),
          bias_hh(data_or_null(bias_hh)),
          h0(data_or_null(h0)),
          hidden(weight_ih.shape(0) / slabs),
          size(weight_hh ? weight_hh->shape(1) : hidden),
          y(y) {}

    // h before this step, null for zeros.
    const T* h_before(const StepRow& at) const {
        if (at.position_before >= 0) return y + at.position_before * size;
        return h0 == nullptr ? nullptr : h0 + at.sequence * size;
    }
};

// The row of what is kept of the step before, or of the initial state, or null for zeros.
template <class T>
const T* kept_before(const StepRow& at, const T* kept, const T* initial, long width) {
    if (at.row_before >= 0) return kept + at.row_before * width;
    return initial == nullptr ? nullptr : initial + at.sequence * width;
}

// The values that a step keeps for backward alone: (rows, width), written by non-temporal stores if
// they are large. Throws IndexError if the array has another size, as that of other lengths has.
template <class T>
class Kept {
  public:
    template <class Values>
    Kept(const Values& values, long rows, long width)
        : values_(const_cast<T*>(values.data())),
          width_(width),
          large_(outgrows_caches<T>(rows * width)) {
        if (values.size() != rows * width)
            throw nb::index_error("what was kept of the steps has the size of other lengths");
    }

    T* at(long row) const { return values_ + row * width_; }
    template <class Lanes>
    void set(long row, long column, Lanes lanes, Vec<T> v) const {
        T* target = at(row) + column;
        large_ ? lanes.stream(target, v) : lanes.store(target, v);
    }

  private:
    T* values_;
    long width_;
    bool large_;
};

template <class T, class Lanes>
Vec<T> load_or_zero(Lanes lanes, const T* row) {
    return row == nullptr ? Vec<T>{} : lanes.load(row);
}

// target[n] = rows[last step of n] of `width`, or the initial state.
template <class T>
void write_final(T* target, const T* last, const T* initial, long sequence, long width) {
    T* row = target + sequence * width;
    if (last != nullptr)
        copy_values(row, last, width);
    else if (initial != nullptr)
        copy_values(row, initial + sequence * width, width);
    else
        std::fill_n(row, width, T(0));
}

template <class T>
void clear_padding(T* values, const Sequences& sequences, long sorted_index, long width) {
    std::fill_n(values + sequences.position(sorted_index, 0) * width +
                    sequences.length(sorted_index) * width,
                (sequences.steps() - sequences.length(sorted_index)) * width, T(0));
}

template <class T>
using Wanted = std::optional<Out<T>>;

// The gradients an op is asked for; null where one is not wanted.
template <class T>
struct Gradients {
    T* dx;
    T* dweight_ih;
    T* dweight_hh;
    T* dbias_ih;
    T* dbias_hh;
    T* dweight_hr;
    T* dh0;
    T* dc0;

    Gradients(const Check& check, LayerSizes& sizes, const Wanted<T>& dx,
              const Wanted<T>& dweight_ih, const Wanted<T>& dweight_hh, const Wanted<T>& dbias_ih,
              const Wanted<T>& dbias_hh, const Wanted<T>& dweight_hr, const Wanted<T>& dh0,
              const Wanted<T>& dc0)
        : dx(data_or_null(dx)),
          dweight_ih(data_or_null(dweight_ih)),
          dweight_hh(data_or_null(dweight_hh)),
          dbias_ih(data_or_null(dbias_ih)),
          dbias_hh(data_or_null(dbias_hh)),
          dweight_hr(data_or_null(dweight_hr)),
          dh0(data_or_null(dh0)),
          dc0(data_or_null(dc0)) {
        check.shape("dx", dx, sizes.batch, sizes.steps, sizes.features);
        check.shape("dweight_ih", dweight_ih, sizes.gates, sizes.features);
        check.shape("dweight_hh", dweight_hh, sizes.gates, sizes.size);
        check.shape("dbias_ih", dbias_ih, sizes.gates);
        check.shape("dbias_hh", dbias_hh, sizes.gates);
        check.shape("dweight_hr", dweight_hr, sizes.size, sizes.hidden);
        check.shape("dh0", dh0, sizes.batch, sizes.size);
        check.shape("dc0", dc0, sizes.batch, sizes.hidden);
    }
};

}  // namespace handgrad::recurrence
