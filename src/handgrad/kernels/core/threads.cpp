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
#include "core/placement.h"

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

// Whether done() became true before so long had passed.
template <class Done>
bool spin(std::chrono::microseconds length, const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + length;
    do {
        for (int i = 0; i < 64; i++) {
            if (done()) return true;
            relax();
        }
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
}

struct Worker {
    pthread_t handle() { return thread.native_handle(); }

    std::thread thread;
    std::atomic<int> core{-1};  // where it was last seen
    std::atomic<bool> inside{false};
    // The caller's alone.
    long cpu_time = 0;
    Hold hold;
};

class Pool {
  public:
    explicit Pool(int workers) : workers_(static_cast<std::size_t>(workers)) {
        for (Worker& worker : workers_) worker.thread = std::thread([&] { work(worker); });
    }

    ~Pool() {
        stop_ = true;
        announce();
        for (Worker& worker : workers_) worker.thread.join();
    }

    void run(long count, long chunk, void (*run)(void*, long, long), void* context) {
        run_ = run;
        context_ = context;
        count_ = count;
        chunk_ = chunk;
        next_.store(0, std::memory_order_relaxed);
        open_.store(true);
        announce_apart();
        take_chunks();
        // Whoever enters after this sees a closed job; whoever entered before is waited for.
        open_.store(false);
        await_workers();
    }

  private:
    // Where all cores are busy, the system leaves a worker on the core where it was last, even if
    // that is the caller's: they would take turns on it while a neighbour has the other.
    void announce_apart() {
        const int core = current_core();
        if (core < 0) return announce();
        caller_core_.store(core, std::memory_order_relaxed);
        bool held = false;
        for (Worker& worker : workers_) {
            if (worker.core.load(std::memory_order_relaxed) != core) continue;
            worker.hold.off(worker.handle(), core);
            worker.core.store(-1, std::memory_order_relaxed);
            held = true;
        }
        announce();
        if (!held) return;
        for (Worker& worker : workers_) worker.hold.release(worker.handle());
    }

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

    void work(Worker& self) {
        unsigned long seen = 0;
        while (!stop_.load()) {
            await_news(seen);
            seen = generation_.load();
            self.core.store(current_core(), std::memory_order_relaxed);
            self.inside.store(true, std::memory_order_relaxed);
            inside_.fetch_add(1);
            if (open_.load()) take_chunks();
            self.inside.store(false, std::memory_order_relaxed);
            if (inside_.fetch_sub(1) == 1 && waiting_.load()) {
                std::lock_guard lock(mutex_);
                left_.notify_one();
            }
        }
    }

    void await_workers() {
        const auto left = [&] { return inside_.load() == 0; };
        if (spin(kSpin / 2, left)) return;
        for (Worker& worker : workers_) worker.cpu_time = cpu_time(worker.handle());
        if (spin(kSpin / 2, left)) return;
        make_room();
        std::unique_lock lock(mutex_);
        waiting_.store(true);
        left_.wait(lock, left);
        waiting_.store(false);
    }

    // A worker that the system has put aside in the middle of a chunk gets the core that this
    // thread is about to leave. The system might move it, but not one that ran a moment ago.
    void make_room() {
        const int core = current_core();
        for (Worker& worker : workers_) {
            if (!worker.inside.load(std::memory_order_relaxed)) continue;
            if (worker.core.load(std::memory_order_relaxed) == core) return;
            const long time = cpu_time(worker.handle());
            if (time < 0 || time != worker.cpu_time) continue;
            worker.hold.on(worker.handle(), core);
            worker.hold.release(worker.handle());
            worker.core.store(core, std::memory_order_relaxed);
            return;
        }
    }

    void await_news(unsigned long seen) {
        const auto news = [&] { return generation_.load() != seen; };
        // On the caller's core spinning would only keep the caller from making news.
        const bool beside = current_core() != caller_core_.load(std::memory_order_relaxed);
        if (beside ? spin(kSpin, news) : news()) return;
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, news);
        sleeping_.fetch_sub(1);
    }

    void (*run_)(void*, long, long) = nullptr;
    void* context_ = nullptr;
    long count_ = 0;
    long chunk_ = 1;
    alignas(64) std::atomic<long> next_{0};
    alignas(64) std::atomic<unsigned long> generation_{0};
    std::atomic<int> caller_core_{-2};
    std::atomic<bool> open_{false};
    std::atomic<int> inside_{0};
    std::atomic<int> sleeping_{0};
    std::atomic<bool> stop_{false};
    std::atomic<bool> waiting_{false};
    std::mutex mutex_;
    std::condition_variable wake_, left_;
    std::vector<Worker> workers_;
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
