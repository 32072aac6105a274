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

#include "core/recurrence/backward.h"
#include "core/recurrence/forward.h"
