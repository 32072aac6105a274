// The instruction sets that this CPU runs, as handgrad.kernels.INSTRUCTION_SETS names them.
#pragma once

#include <vector>

namespace handgrad {

// Best first.
inline std::vector<const char*> instruction_sets() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v4) return {"x86-64-v4", "x86-64-v3", "x86-64"};
    if (v3) return {"x86-64-v3", "x86-64"};
    return {"x86-64"};
#elif defined(__aarch64__)
    return {"arm64"};
#else
    return {"generic"};
#endif
}

}  // namespace handgrad
