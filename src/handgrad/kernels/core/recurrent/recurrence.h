// Recurrent layers over whole sequences: the shared part of rnn, lstm, gru and leaky_rnn.
//
// Sequences do not depend on each other, so each thread takes a partition of them through all steps
// and waits for no other. The weights are packed once. A step multiplies the rows [x_t, h_{t−1}] of
// its sequences with them, all gates of a few hidden units at a time, and the cell turns these sums
// into h_t while they are in registers or cache. Going backward, a step first turns dh_t into the
// gate gradients da_t, and the products of da_t with the same weights are dx_t and dh_{t−1}. The
// gradients of the weights are one product each, over all steps of all sequences.
//
// Sequences are sorted by length, longest first, so that those which have a step at time t are the
// first few, and padding is in no product. The cache for backward has one row for each step that
// counts, all of time 0 before those of time 1: it does not depend on the partition.
#pragma once

#include "core/recurrent/cell.h"

namespace handgrad::recurrence {

// All steps at the precision in force, compiled once for float and double.
template <class T>
void step_forward(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell, T* h_n);
template <class T>
void step_backward(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell,
                   const T* dy, const T* dh_n, const T* dc_n, const Gradients<T>& out);

// y of all steps and the final h.
template <class T, class Vectors>
void run_forward(const Inputs<T>& in, const Sequences& sequences, const Vectors& vectors, T* h_n) {
    step_forward<T>(in, sequences, CellOf<T, Vectors>(vectors), h_n);
}

// All gradients.
template <class T, class Vectors>
void run_backward(const Inputs<T>& in, const Sequences& sequences, const Vectors& vectors,
                  const T* dy, const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    step_backward<T>(in, sequences, CellOf<T, Vectors>(vectors), dy, dh_n, dc_n, out);
}

}  // namespace handgrad::recurrence
