// Other Python threads may run while a large kernel computes.
#pragma once

#include <nanobind/nanobind.h>

namespace handgrad {

// Gives the interpreter away for work on this many values; for less it is not worth the hand-over.
class WithoutGil {
  public:
    explicit WithoutGil(long values) : state_(values > 10000 ? PyEval_SaveThread() : nullptr) {}
    ~WithoutGil() {
        if (state_ != nullptr) PyEval_RestoreThread(state_);
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

  private:
    PyThreadState* state_;
};

}  // namespace handgrad
