// Memory of this thread for one piece of work, handed out part by part, on cache lines.
#pragma once

#include "core/runtime/threads.h"

namespace handgrad::attention {

class Arena {
  public:
    // Without memory it only counts.
    explicit Arena(char* memory = nullptr) : memory_(memory) {}

    template <class T>
    T* take(long count) {
        T* here = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
        used_ += (count * static_cast<long>(sizeof(T)) + 63) / 64 * 64;
        return here;
    }
    long used() const { return used_; }

  private:
    char* memory_;
    long used_ = 0;
};

// A Work(arena, given...) whose parts lie in memory of this thread: made once to count them, and
// once to keep.
template <class Work, class... Given>
Work in_workspace(const Given&... given) {
    Arena counting;
    const Work counted(counting, given...);
    Arena arena(thread_workspace<char>(WorkspaceSlot::kPanelA, counting.used()));
    return Work(arena, given...);
}

}  // namespace handgrad::attention
