// The capture that is active on this thread, if there is one.
#pragma once

#include "core/binding/binding.h"

namespace handgrad {

// Keeps a call of a kernel.
void capture_call(PyObject* kernel, PyObject* const* arguments, Py_ssize_t count);

// Nothing of it is replayed any more.
void invalidate_capture(const char* reason);

}  // namespace handgrad
