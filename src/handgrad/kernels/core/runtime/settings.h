// Settings of calls, from the context of the caller.
#pragma once

#include "core/binding/binding.h"
#include "core/runtime/threads.h"

namespace handgrad {

// Those in force in the current context of Python, as handgrad.dispatch.settings keeps them: one
// context variable with a tuple (engine, precision, threads), or, where it has no value, those of
// the process. Throws nb::python_error.
CallSettings current_settings();

}  // namespace handgrad
