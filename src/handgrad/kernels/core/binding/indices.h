// Indices from outside, looked at before memory is reached through them.
#pragma once

#include <optional>
#include <string>

#include "core/binding/binding.h"

namespace handgrad {

// Throws IndexError unless every index is in [0, count) or is `allowed`, if that is given.
inline void check_indices(const Indices& indices, long count,
                          std::optional<long> allowed = std::nullopt) {
    for (long i = 0; i < indices.size(); i++) {
        const long index = indices.data()[i];
        if ((index < 0 || index >= count) && allowed != index)
            throw nb::index_error(
                ("index " + std::to_string(index) + "; allowed: 0 to " + std::to_string(count - 1))
                    .c_str());
    }
}

}  // namespace handgrad
