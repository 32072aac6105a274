// Lengths of sequences from outside, looked at before memory is reached through them.
#pragma once

#include <optional>
#include <string>

#include "core/binding.h"

namespace handgrad {

// One length for each sequence, or null where all are whole. Throws IndexError for another number
// of them, and for one outside 0 to `steps`.
inline const std::int64_t* checked_lengths(const std::optional<Indices>& lengths, long batch,
                                           long steps) {
    if (!lengths) return nullptr;
    if (lengths->size() != batch)
        throw nb::index_error(("there are " + std::to_string(lengths->size()) + " lengths for " +
                               std::to_string(batch) + " sequences")
                                  .c_str());
    for (long n = 0; n < batch; n++) {
        const std::int64_t length = lengths->data()[n];
        if (length < 0 || length > steps)
            throw nb::index_error(
                ("length " + std::to_string(length) + "; allowed: 0 to " + std::to_string(steps))
                    .c_str());
    }
    return lengths->data();
}

}  // namespace handgrad
