// Subnormal numbers as 0, where their exact values are worth less than the time they take.
#pragma once

#include <cstdint>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace handgrad {

// While one exists, this thread's arithmetic reads and writes subnormal numbers as 0. A processor
// that computes with them exactly takes a hundred times longer for each (Intel, "64 and IA-32
// Architectures Optimization Reference Manual", on the floating-point assist), and a moment or a
// saturated activation stays subnormal for thousands of steps. The difference is below 1.2e-38 in
// float32 and 2.3e-308 in float64. Loads, stores and selections keep subnormals as they are.
class FlushSubnormals {
  public:
    FlushSubnormals(const FlushSubnormals&) = delete;
    FlushSubnormals& operator=(const FlushSubnormals&) = delete;

#if defined(__x86_64__) || defined(_M_X64)
    FlushSubnormals() { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }
    ~FlushSubnormals() { _mm_setcsr(saved_); }

  private:
    static constexpr unsigned kFlushToZero = 1U << 15, kDenormalsAreZero = 1U << 6;
    unsigned saved_ = _mm_getcsr();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    FlushSubnormals() {
        asm volatile("mrs %0, fpcr" : "=r"(saved_));
        asm volatile("msr fpcr, %0" : : "r"(saved_ | kFlushToZero) : "memory");
    }
    ~FlushSubnormals() { asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory"); }

  private:
    static constexpr std::uint64_t kFlushToZero = std::uint64_t(1) << 24;
    std::uint64_t saved_;
#else
    FlushSubnormals() = default;
#endif
};

}  // namespace handgrad
