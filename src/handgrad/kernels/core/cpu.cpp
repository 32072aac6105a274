// Which of the compiled instruction sets this CPU runs, best first; for handgrad.kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace {

nb::tuple supported() {
    nb::list names;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v4) names.append("x86-64-v4");
    if (v3) names.append("x86-64-v3");
    names.append("x86-64");
#elif defined(__aarch64__)
    names.append("arm64");
#else
    names.append("generic");
#endif
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
    m.def("supported", &supported, "Compiled instruction sets this CPU runs, best first.");
    m.def("features", &features, "CPU features the kernels can use.");
}
