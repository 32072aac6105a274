// Packed weights that outlive a call: those of a capture whose weights never change.
//
// A replay of such a capture finds what an earlier one packed, by where the weights lie and by the
// layout. Everywhere else packed operands are the workspace of one call.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/memory.h"

namespace handgrad {

class Packs {
  public:
    using Key = std::vector<long>;

    Packs() = default;
    Packs(const Packs&) = delete;
    Packs& operator=(const Packs&) = delete;
    ~Packs() {
        for (const auto& [key, block] : blocks_) free_block(block);
    }

    // The memory under this key, and whether it is new and has to be filled.
    std::pair<void*, bool> at(Key key, long count, long size) {
        const auto found = blocks_.find(key);
        if (found != blocks_.end()) return {found->second.data, false};
        const MemoryBlock block = allocate_block(count, size);
        blocks_.emplace(std::move(key), block);
        return {block.data, true};
    }

    // Forgets what a call that failed may have left unfilled.
    void clear() {
        for (const auto& [key, block] : blocks_) free_block(block);
        blocks_.clear();
    }

  private:
    std::map<Key, MemoryBlock> blocks_;
};

// Those of the replay on this thread, if it has any.
inline thread_local Packs* active_packs = nullptr;

// Memory for a packed operand; `key()` says what is packed, and how.
template <class T>
class PackedOperand {
  public:
    template <class MakeKey>
    PackedOperand(long count, const MakeKey& key) {
        if (active_packs == nullptr) {
            data_ = own_.emplace(count).data();
            return;
        }
        const auto [data, is_new] = active_packs->at(key(), count, static_cast<long>(sizeof(T)));
        data_ = static_cast<T*>(data);
        is_new_ = is_new;
    }

    T* data() const { return data_; }
    // True where it has to be filled.
    bool is_new() const { return is_new_; }

  private:
    std::optional<Workspace<T>> own_;
    T* data_;
    bool is_new_ = true;
};

}  // namespace handgrad
