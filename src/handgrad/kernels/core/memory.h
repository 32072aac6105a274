// Blocks of memory that are used again; see memory.cpp.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace handgrad {

// Under AddressSanitizer blocks have exactly the size asked for and are never used again, so that
// an overrun is seen.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kExactBlocks = true;
#else
constexpr bool kExactBlocks = false;
#endif

// A block of exactly this size, on a cache line; std::free releases it.
inline void* exact_block(std::size_t size) {
    void* block = nullptr;
    if (posix_memalign(&block, 64, size) != 0) throw std::bad_alloc();
    return block;
}

void* take_block(std::size_t bytes);
void give_back_block(void* block);

// A temporary of `count` values for the duration of one call.
template <class T>
class Temporary {
  public:
    explicit Temporary(long count)
        : data_(static_cast<T*>(take_block(static_cast<std::size_t>(count) * sizeof(T)))) {}
    ~Temporary() { give_back_block(data_); }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    T* data() const { return data_; }

  private:
    T* data_;
};

}  // namespace handgrad
