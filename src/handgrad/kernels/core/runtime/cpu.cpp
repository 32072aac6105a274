// Instruction sets and features of this CPU, for handgrad.kernels and `handgrad info`.
#include <nanobind/nanobind.h>

#include "core/runtime/instruction_sets.h"

namespace nb = nanobind;

namespace {

nb::tuple runs() {
    nb::list names;
    for (const char* name : handgrad::instruction_sets()) names.append(name);
    return nb::tuple(names);
}

// The CPU's features that the kernels can use, for `handgrad info`.
nb::tuple features() {
    nb::list names;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) names.append("avx2");
    if (__builtin_cpu_supports("fma")) names.append("fma");
    if (__builtin_cpu_supports("avx512f")) names.append("avx512f");
    if (__builtin_cpu_supports("avx512bf16")) names.append("avx512_bf16");
#elif defined(__aarch64__)
    names.append("neon");
#endif
    return nb::tuple(names);
}

}  // namespace

NB_MODULE(_cpu, m) {
    m.def("runs", &runs, "Instruction sets this CPU runs, best first, compiled or not.");
    m.def("features", &features, "CPU features the kernels can use.");
}
