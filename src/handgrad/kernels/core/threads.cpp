#include "core/threads.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "core/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace handgrad {
namespace {

// Long enough to bridge the Python between two kernels, short enough to cost a neighbour little.
constexpr auto kSpin = std::chrono::microseconds(100);

thread_local bool inside_job = false;

inline void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class Pool {
  public:
    explicit Pool(int workers) {
        for (int i = 0; i < workers; i++) threads_.emplace_back([this] { work(); });
    }

    ~Pool() {
        stop_ = true;
        announce();
        for (auto& thread : threads_) thread.join();
    }

    void run(long count, long chunk, void (*run)(void*, long, long), void* context) {
        run_ = run;
        context_ = context;
        count_ = count;
        chunk_ = chunk;
        next_.store(0, std::memory_order_relaxed);
        open_.store(true);
        announce();
        take_chunks();
        // Whoever enters after this sees a closed job; whoever entered before is waited for.
        open_.store(false);
        await_workers();
    }

  private:
    void announce() {
        generation_.fetch_add(1);
        if (sleeping_.load() > 0) {
            std::lock_guard lock(mutex_);
            wake_.notify_all();
        }
    }

    void take_chunks() {
        inside_job = true;
        for (;;) {
            const long begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
            if (begin >= count_) break;
            run_(context_, begin, std::min(begin + chunk_, count_));
        }
        inside_job = false;
    }

    void work() {
        unsigned long seen = 0;
        while (!stop_.load()) {
            await_news(seen);
            seen = generation_.load();
            inside_.fetch_add(1);
            if (open_.load()) take_chunks();
            if (inside_.fetch_sub(1) == 1 && waiting_.load()) {
                std::lock_guard lock(mutex_);
                left_.notify_one();
            }
        }
    }

    // A worker that the system has put aside in the middle of a chunk gets a core sooner if this
    // thread leaves its own.
    void await_workers() {
        const auto deadline = std::chrono::steady_clock::now() + kSpin;
        do {
            for (int i = 0; i < 64; i++) {
                if (inside_.load() == 0) return;
                relax();
            }
        } while (std::chrono::steady_clock::now() < deadline);
        std::unique_lock lock(mutex_);
        waiting_.store(true);
        left_.wait(lock, [&] { return inside_.load() == 0; });
        waiting_.store(false);
    }

    void await_news(unsigned long seen) {
        const auto deadline = std::chrono::steady_clock::now() + kSpin;
        do {
            for (int i = 0; i < 64; i++) {
                if (generation_.load(std::memory_order_relaxed) != seen) return;
                relax();
            }
        } while (std::chrono::steady_clock::now() < deadline);
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        sleeping_.fetch_sub(1);
    }

    void (*run_)(void*, long, long) = nullptr;
    void* context_ = nullptr;
    long count_ = 0;
    long chunk_ = 1;
    alignas(64) std::atomic<long> next_{0};
    alignas(64) std::atomic<unsigned long> generation_{0};
    std::atomic<bool> open_{false};
    std::atomic<int> inside_{0};
    std::atomic<int> sleeping_{0};
    std::atomic<bool> stop_{false};
    std::atomic<bool> waiting_{false};
    std::mutex mutex_;
    std::condition_variable wake_, left_;
    std::vector<std::thread> threads_;
};

int thread_count = 0;
Pool* pool = nullptr;
// One job at a time: a second Python thread that computes runs its own job serially.
std::mutex pool_in_use;

// A forked child has the pool's memory but none of its threads: it starts a new one when needed.
void forget_pool_after_fork() {
    pool = nullptr;
    new (&pool_in_use) std::mutex;
}

}  // namespace

int get_threads() {
    if (thread_count == 0)
        thread_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return thread_count;
}

void set_threads(int count) {
    std::lock_guard lock(pool_in_use);
    delete pool;
    pool = nullptr;
    thread_count = std::max(1, count);
}

void run_parallel(long count, long chunk, void (*run)(void*, long, long), void* context) {
    std::unique_lock lock(pool_in_use, std::defer_lock);
    if (inside_job || get_threads() == 1 || !lock.try_lock()) {
        for (long begin = 0; begin < count; begin += chunk)
            run(context, begin, std::min(begin + chunk, count));
        return;
    }
    if (pool == nullptr) {
        static const int registered = pthread_atfork(nullptr, nullptr, forget_pool_after_fork);
        (void)registered;
        pool = new Pool(get_threads() - 1);
    }
    pool->run(count, chunk, run, context);
}

namespace {

struct ScratchMemory {
    void* data[static_cast<int>(Scratch::kCount)] = {};
    long size[static_cast<int>(Scratch::kCount)] = {};
    ~ScratchMemory() {
        for (void* p : data) std::free(p);
    }
};

}  // namespace

void* scratch_bytes(Scratch slot, long bytes) {
    thread_local ScratchMemory memory;
    void*& data = memory.data[static_cast<int>(slot)];
    long& size = memory.size[static_cast<int>(slot)];
    if (kExactBlocks) {
        std::free(data);
        return data = exact_block(static_cast<std::size_t>(bytes));
    }
    if (size < bytes) {
        // Packed panels are read over and over: huge pages spare the look-up of many small ones.
        constexpr long kHugePage = 2 << 20;
        const long unit = bytes > kHugePage / 16 ? kHugePage : 4096;
        const long rounded = (bytes + unit - 1) / unit * unit;
        std::free(data);
        size = 0;
        data =
            std::aligned_alloc(static_cast<std::size_t>(unit), static_cast<std::size_t>(rounded));
        if (data == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        if (unit == kHugePage) madvise(data, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
#endif
        size = rounded;
    }
    return data;
}

}  // namespace handgrad
