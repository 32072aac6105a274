#include "core/runtime/settings.h"

#include <cstring>

namespace handgrad {
namespace {

PyObject* variable = nullptr;
// The precision of the process; its number of threads is the pool's to know.
bool default_bf16 = false;

void set_context_variable(nb::handle given) {
    if (!PyContextVar_CheckExact(given.ptr())) throw nb::type_error("not a ContextVar");
    Py_XDECREF(variable);
    variable = given.inc_ref().ptr();
}

// Runs the handlers of the signals that have come, and throws what one of them raises.
void check_signals() {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

const Registrar registrar([](nb::module_& m) {
    m.def("set_context_variable", &set_context_variable, "variable"_a);
    m.def("set_default_precision", [](bool bf16) { default_bf16 = bf16; }, "bf16"_a);
    m.def("set_default_threads", &set_default_threads, "count"_a, "follows_affinity"_a);
    m.def("get_threads", [] {
        const int own = current_settings().threads;
        return own > 0 ? own : default_threads();
    });
    m.attr("most_threads") = kMostThreads;
    // Whoever imports the module may be any thread, so Python says which is the main one.
    m.def(
        "watch_signals",
        [](unsigned long main) {
            pthread_t thread;
            static_assert(sizeof thread == sizeof main);
            std::memcpy(&thread, &main, sizeof thread);
            set_interrupt_check(check_signals, thread);
        },
        "main"_a);
});

}  // namespace

CallSettings current_settings() {
    PyObject* value = nullptr;
    if (variable != nullptr && PyContextVar_Get(variable, nullptr, &value) < 0)
        throw nb::python_error();
    if (value == nullptr) return {0, default_bf16};
    const nb::object owned = nb::steal(value);
    PyObject* precision = PyTuple_GET_ITEM(value, 1);
    const long threads = PyLong_AsLong(PyTuple_GET_ITEM(value, 2));
    return {static_cast<int>(threads), PyUnicode_CompareWithASCIIString(precision, "bf16") == 0};
}

}  // namespace handgrad
