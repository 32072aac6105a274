// Lengths of sequences from outside, looked at before memory is reached through them.
#pragma once

#include <optional>

#include "core/binding/binding.h"

namespace handgrad {

// One length for each sequence, or null where all are whole. Throws IndexError for another number
// of them, and for one outside 0 to `steps`.
const std::int64_t* checked_lengths(const std::optional<Indices>& lengths, long batch, long steps);

}  // namespace handgrad
