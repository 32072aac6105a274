// Recurrent layers over whole sequences: what rnn, lstm, gru and leaky_rnn share.
//
// Sequences do not depend on each other, so each thread takes some of them through all steps and
// waits for nobody. The weights are packed once. A step multiplies the rows [x_t, h_{t−1}] of its
// sequences with them, all gates of a few hidden units at a time, and the cell turns these sums
// into h_t while they are at hand. Going backward, a step first turns dh_t into the gradients da_t
// of the sums, and the products of da_t with the same weights are dx_t and dh_{t−1}. The gradients
// of the weights are one product each, over all steps of all sequences.
//
// Longer sequences come first, so that those which have a step at time t are the first few, and
// padding is in no product. What is kept for backward has one row for each step that counts, all of
// time 0 before those of time 1: how the sequences are shared out leaves no trace in it.
#pragma once

#include "core/recurrence/backward.h"
#include "core/recurrence/forward.h"
