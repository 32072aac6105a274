// Other Python threads may run while a large kernel computes.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace handgrad {

// Gives the interpreter away for work on this many values; for less it is not worth the hand-over.
class WithoutGil {
  public:
    explicit WithoutGil(long values) {
        if (values > 10000) release_.emplace();
    }

  private:
    std::optional<nanobind::gil_scoped_release> release_;
};

}  // namespace handgrad
