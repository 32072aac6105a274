// Blocks of memory that are used again.
//
// A training step frees what the step before allocated, in the same sizes. Freed blocks are
// therefore kept, by size, for the next allocation: steady-state training touches no fresh pages.
// Sizes are rounded up to classes, eight for each power of two, and of every class no more is kept
// than was in use at once lately: in this window of time and the one before. A peak that is over is
// thus given back to the system within two windows of other work, of about a second each.
#include "core/runtime/memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "core/runtime/clock.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace handgrad {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kLargest = std::size_t(1) << 62;
// A block goes back to the system where blocks in use and blocks kept would come to so much more
// than were in use at once lately, or to half as much more: a block fits no other size, and those
// that a step uses one after another are all to be kept.
constexpr std::size_t kSpare = std::size_t(32) << 20;
// A window ends after a second, but not before so many blocks were taken, as the steps of a large
// model are longer; and in any case after half a minute.
constexpr long kWindow = 1'000'000'000, kLongestWindow = 30 * kWindow, kTakes = 1024;
// Memory given back below the top of malloc's heap stays there until malloc is asked to trim it.
constexpr std::size_t kWorthTrimming = 8 << 20;

// No block is smaller than a line, so classes below its own stay empty.
constexpr int kSteps = 8, kClasses = 63 * kSteps, kFirst = 6 * kSteps;
static_assert(kLine == 1 << (kFirst / kSteps));

struct SizeClass {
    std::size_t capacity;
    std::size_t index;
};

SizeClass class_of(std::size_t size) {
    const auto round_up = [](std::size_t n, std::size_t unit) {
        return (n + unit - 1) / unit * unit;
    };
    size = round_up(std::max(size, kLine), size >= kHugePage ? kHugePage : kLine);
    const int octave = std::bit_width(size) - 1;
    const std::size_t step = std::size_t(1) << (octave - 3);
    // Rounded up, it may be the first class of the next octave; the index goes on by itself.
    const std::size_t steps = (size + step - 1) / step;
    return {steps * step, static_cast<std::size_t>(octave) * kSteps + steps - kSteps};
}

void* system_block(std::size_t capacity) noexcept {
    const std::size_t alignment = capacity >= kHugePage ? kHugePage : kLine;
    void* block = std::aligned_alloc(alignment, capacity);
#if defined(MADV_HUGEPAGE)
    if (block != nullptr && capacity >= kHugePage) madvise(block, capacity, MADV_HUGEPAGE);
#endif
    return block;
}

// The list of a class's free blocks goes through the blocks themselves: nothing here allocates.
struct Link {
    Link* next;
};

void free_all(Link* list, std::size_t bytes) noexcept {
    while (list != nullptr) std::free(std::exchange(list, list->next));
#if defined(__GLIBC__)
    if (bytes >= kWorthTrimming) malloc_trim(0);
#else
    (void)bytes;
#endif
}

// Its text becomes that of Python's MemoryError, which says how much was asked for.
class OutOfMemory : public std::bad_alloc {
  public:
    explicit OutOfMemory(double bytes) noexcept {
        std::snprintf(text_, sizeof text_, "a kernel could not get %.4g MB of memory", bytes / 1e6);
    }
    const char* what() const noexcept override { return text_; }

  private:
    char text_[64];
};

class BlockPool {
  public:
    MemoryBlock allocate(std::size_t size) {
        const auto [capacity, index] = class_of(size);
        Removed removed;
        void* block = nullptr;
        {
            std::lock_guard lock(mutex_);
            Class& one = classes_[index];
            one.used++;
            one.peak = std::max(one.peak, one.used);
            used_ += capacity;
            peak_ = std::max(peak_, used_);
            if (one.free != nullptr) {
                block = std::exchange(one.free, one.free->next);
                one.kept--;
                kept_ -= capacity;
            }
            pass_time(1, removed);
        }
        free_all(removed.list, removed.bytes);
        if (block == nullptr) block = system_block(capacity);
        if (block == nullptr) {
            // Blocks kept for other sizes may be what is missing.
            release();
            block = system_block(capacity);
        }
        if (block == nullptr) {
            std::lock_guard lock(mutex_);
            classes_[index].used--;
            used_ -= capacity;
            throw OutOfMemory(double(capacity));
        }
        return {block, capacity};
    }

    void free(MemoryBlock block) noexcept {
        const auto [capacity, index] = class_of(block.capacity);
        {
            std::lock_guard lock(mutex_);
            Class& one = classes_[index];
            one.used--;
            used_ -= capacity;
            const std::size_t peak = std::max(peak_, last_peak_);
            if (used_ + kept_ + capacity <= peak + std::max(peak / 2, kSpare)) {
                one.free = new (block.data) Link{one.free};
                one.kept++;
                kept_ += capacity;
                return;
            }
        }
        std::free(block.data);
    }

    void note_small(long count) noexcept {
        Removed removed;
        {
            std::lock_guard lock(mutex_);
            pass_time(count, removed);
        }
        free_all(removed.list, removed.bytes);
    }

    void release() noexcept {
        Removed removed;
        {
            std::lock_guard lock(mutex_);
            for (std::size_t i = kFirst; i < kClasses; i++) remove(i, 0, removed);
        }
        free_all(removed.list, std::max(removed.bytes, kWorthTrimming));
    }

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    struct Class {
        Link* free = nullptr;
        long kept = 0, used = 0, peak = 0, last_peak = 0;
    };
    struct Removed {
        Link* list = nullptr;
        std::size_t bytes = 0;
    };

    // All free blocks of a class but these, from its list to the other.
    void remove(std::size_t index, long keep, Removed& removed) {
        Class& one = classes_[index];
        // The capacity of class `index`, which class_of() made of octave and steps.
        const std::size_t capacity = (index % kSteps + kSteps) << (index / kSteps - 3);
        while (one.kept > keep) {
            Link* block = one.free;
            one.free = block->next;
            block->next = removed.list;
            removed.list = block;
            removed.bytes += capacity;
            one.kept--;
            kept_ -= capacity;
        }
    }

    void pass_time(long takes, Removed& removed) {
        takes_ += takes;
        const long now = coarse_time(), passed = now - window_;
        if (passed < kWindow || (takes_ < kTakes && passed < kLongestWindow)) return;
        for (std::size_t i = kFirst; i < kClasses; i++) {
            Class& one = classes_[i];
            if (one.kept > 0)
                remove(i, std::max(std::max(one.peak, one.last_peak) - one.used, 0L), removed);
            one.last_peak = std::exchange(one.peak, one.used);
        }
        last_peak_ = std::exchange(peak_, used_);
        window_ = now;
        takes_ = 0;
    }

    std::mutex mutex_;
    Class classes_[kClasses];
    std::size_t kept_ = 0, used_ = 0, peak_ = 0, last_peak_ = 0;
    long window_ = 0, takes_ = 0;
};

// Its type has no destructor, since arrays may outlive every static object of the module.
constinit BlockPool block_pool;

}  // namespace

// A fork waits for the lock, so that the child has the pool as it is between two calls.
void handle_forks_of_memory() {
    if (pthread_atfork([] { block_pool.lock(); }, [] { block_pool.unlock(); },
                       [] { block_pool.unlock(); }) != 0)
        throw std::bad_alloc();
}

MemoryBlock allocate_block(long count, long size) {
    std::size_t bytes;
    if (count < 0 || __builtin_mul_overflow(static_cast<std::size_t>(count), size, &bytes) ||
        bytes > kLargest)
        throw OutOfMemory(double(count) * double(size));
    if (!kExactBlocks) return block_pool.allocate(bytes);
    void* block = nullptr;
    if (posix_memalign(&block, kLine, bytes) != 0) throw OutOfMemory(double(bytes));
    return {block, bytes};
}

void free_block(MemoryBlock block) noexcept {
    if (kExactBlocks)
        std::free(block.data);
    else
        block_pool.free(block);
}

void note_small_arrays(long count) noexcept { block_pool.note_small(count); }
void release_blocks() noexcept { block_pool.release(); }

}  // namespace handgrad
