// Blocks of memory that are used again; see memory.cpp.
#pragma once

#include <cstddef>

namespace handgrad {

// Under AddressSanitizer blocks have exactly the size asked for and are never used again, so that
// an overrun is seen.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kExactBlocks = true;
#elif defined(__has_feature)
constexpr bool kExactBlocks = __has_feature(address_sanitizer);
#else
constexpr bool kExactBlocks = false;
#endif

// A block on a cache line, and its real size in bytes, which free_block needs.
struct MemoryBlock {
    void* data = nullptr;
    std::size_t capacity = 0;
};

// Throws std::bad_alloc where the system has no more, and for sizes below 0 or beyond 2⁶².
MemoryBlock allocate_block(long count, long size);
void free_block(MemoryBlock block) noexcept;

// Tells the pool that so many arrays too small for it were made: it reckons time in these too.
void note_small_arrays(long count) noexcept;

// To be called once, before the first fork.
void handle_forks_of_memory();

// Gives every block that is kept and not in use back to the system.
void release_blocks() noexcept;

// Workspace for `count` values for the duration of one call.
template <class T>
class Workspace {
  public:
    explicit Workspace(long count) : block_(allocate_block(count, static_cast<long>(sizeof(T)))) {}
    ~Workspace() { free_block(block_); }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    T* data() const { return static_cast<T*>(block_.data); }

  private:
    MemoryBlock block_;
};

}  // namespace handgrad
