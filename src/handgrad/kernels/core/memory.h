// Blocks of memory that are used again; see memory.cpp.
#pragma once

#include <cstddef>

namespace handgrad {

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
