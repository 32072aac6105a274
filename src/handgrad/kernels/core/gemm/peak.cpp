// The machine's own limit: multiply-adds in registers, nothing loaded, nothing stored. Benchmarks
// quote speeds as a part of it.
#include <nanobind/stl/string.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/binding/binding.h"
#include "core/gemm/bf16.h"
#include "core/runtime/gil.h"
#include "core/runtime/threads.h"

namespace handgrad {
namespace {

constexpr int kChains = 12;

template <class V>
inline void keep(V& v) {
#if defined(__AVX512F__)
    asm volatile("" : "+v"(v));
#elif defined(__x86_64__)
    asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(v));
#else
    asm volatile("" : "+m"(v));
#endif
}

// Each returns the floating-point operations of `rounds` rounds.
template <class T>
double multiply_adds(long rounds) {
    Vec<T> sums[kChains] = {};
    Vec<T> a = splat(T(1e-3)), b = splat(T(0.5));
    for (long r = 0; r < rounds; r++) {
        keep(a);
        keep(b);
#pragma GCC unroll 12
        for (int i = 0; i < kChains; i++) sums[i] += a * b;
#pragma GCC unroll 12
        for (int i = 0; i < kChains; i++) keep(sums[i]);
    }
    return 2.0 * static_cast<double>(rounds) * kChains * kLanes<T>;
}

double peak(const std::string& type, double seconds) {
    const auto rounds = type == "float32"   ? multiply_adds<float>
                        : type == "float64" ? multiply_adds<double>
                                            : bf16_multiply_adds;
    const WithoutGil unlocked;
    const int threads = get_threads();
    std::vector<double> rates(static_cast<std::size_t>(threads));
    using Clock = std::chrono::steady_clock;
    parallel_for(threads, 1, [&](long begin, long end) {
        for (long t = begin; t < end; t++) {
            const auto start = Clock::now();
            double operations = 0, passed = 0;
            while (passed < seconds) {
                operations += rounds(10000);
                passed = std::chrono::duration<double>(Clock::now() - start).count();
            }
            rates[static_cast<std::size_t>(t)] = operations / passed;
        }
    });
    double sum = 0;
    for (double rate : rates) sum += rate;
    return sum;
}

const Registrar registrar([](nb::module_& m) {
    m.def("peak", &peak, "type"_a, "seconds"_a,
          "Multiply-add peak of all threads together, in operations a second.");
});

}  // namespace
}  // namespace handgrad
