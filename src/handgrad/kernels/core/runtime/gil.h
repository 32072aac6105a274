// Other Python threads may run while a large kernel computes.
#pragma once

#include <nanobind/nanobind.h>

#include "core/simd/subnormals.h"

namespace handgrad {

// Waits for the interpreter; in a program that ends, for ever: Python would end a thread that comes
// back by then in a way that C++ takes for an error of the whole process.
void take_gil_back(PyThreadState* state) noexcept;

// Gives the interpreter away as long as it lives.
class WithoutGil {
  public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    // For work on this many values; for less it is not worth the hand-over.
    explicit WithoutGil(long values) : state_(values > 10000 ? PyEval_SaveThread() : nullptr) {}
    ~WithoutGil() {
        if (state_ != nullptr) take_gil_back(state_);
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

  private:
    PyThreadState* state_;
};

// Lives as long as a kernel computes: the interpreter is given away, and results that are subnormal
// become 0. Kernels that only select or copy values take WithoutGil alone.
class KernelScope : WithoutGil, FlushSubnormals {
  public:
    KernelScope() = default;
    explicit KernelScope(long values) : WithoutGil(values) {}
};

}  // namespace handgrad
