// Subnormal numbers as 0, where their exact values are worth less than the time they take.
#pragma once

#include <cstdint>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace handgrad {

// A thread's rounding, and its treatment of subnormal numbers.
class FloatMode {
  public:
#if defined(__x86_64__) || defined(_M_X64)
    static FloatMode of_this_thread() { return FloatMode(_mm_getcsr()); }
    void set() const { _mm_setcsr(static_cast<unsigned>(bits_)); }

  private:
    static constexpr std::uint64_t kFlush = 1U << 15;
#elif defined(__aarch64__) && !defined(_MSC_VER)
    static FloatMode of_this_thread() {
        std::uint64_t bits;
        asm volatile("mrs %0, fpcr" : "=r"(bits));
        return FloatMode(bits);
    }
    void set() const { asm volatile("msr fpcr, %0" : : "r"(bits_) : "memory"); }

  private:
    static constexpr std::uint64_t kFlush = std::uint64_t(1) << 24;
#else
    static FloatMode of_this_thread() { return FloatMode(0); }
    void set() const {}

  private:
    static constexpr std::uint64_t kFlush = 0;
#endif

  public:
    FloatMode flushing() const { return FloatMode(bits_ | kFlush); }
    FloatMode exact() const { return FloatMode(bits_ & ~kFlush); }

  private:
    explicit FloatMode(std::uint64_t bits) : bits_(bits) {}
    std::uint64_t bits_;
};

// This thread's arithmetic is in `mode` as long as it lives.
class ScopedFloatMode {
  public:
    explicit ScopedFloatMode(FloatMode mode) { mode.set(); }
    ~ScopedFloatMode() { before_.set(); }
    ScopedFloatMode(const ScopedFloatMode&) = delete;
    ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

  private:
    FloatMode before_ = FloatMode::of_this_thread();
};

// As long as one lives, the arithmetic of this thread, and of the jobs that it starts, writes 0 for
// results that are subnormal. A processor that computes with them exactly takes a hundred times
// longer for each (Intel, "64 and IA-32 Architectures Optimization Reference Manual", on the
// floating-point assist), and a moment or a saturated activation stays subnormal for thousands of
// steps, as a gradient that vanishes over time does. The difference is below 1.2e-38 in float32 and
// 2.3e-308 in float64. Subnormal operands count as they are, except on arm64, where they are 0 too;
// loads, stores and selections keep them everywhere.
class FlushSubnormals : ScopedFloatMode {
  public:
    FlushSubnormals() : ScopedFloatMode(FloatMode::of_this_thread().flushing()) {}
};

}  // namespace handgrad
