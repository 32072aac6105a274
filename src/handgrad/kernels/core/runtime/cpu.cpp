// Instruction sets and features of this CPU, for handgrad.kernels and `handgrad info`. Two
// functions on Python's own interface: nanobind would make the module five times as large.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vector>

#include "core/runtime/instruction_sets.h"

namespace {

PyObject* tuple_of(const std::vector<const char*>& names) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
    for (std::size_t i = 0; tuple != nullptr && i < names.size(); i++) {
        PyObject* name = PyUnicode_FromString(names[i]);
        if (name == nullptr) Py_CLEAR(tuple);
        if (tuple != nullptr) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), name);
    }
    return tuple;
}

PyObject* runs(PyObject*, PyObject*) { return tuple_of(handgrad::instruction_sets()); }

PyObject* features(PyObject*, PyObject*) {
    std::vector<const char*> names;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) names.push_back("avx2");
    if (__builtin_cpu_supports("fma")) names.push_back("fma");
    if (__builtin_cpu_supports("avx512f")) names.push_back("avx512f");
    if (__builtin_cpu_supports("avx512bf16")) names.push_back("avx512_bf16");
#elif defined(__aarch64__)
    names.push_back("neon");
#endif
    return tuple_of(names);
}

PyMethodDef methods[] = {
    {"runs", runs, METH_NOARGS, "Instruction sets this CPU runs, best first, compiled or not."},
    {"features", features, METH_NOARGS, "CPU features the kernels can use."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module{
    PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&module); }
