#include "core/runtime/threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/runtime/clock.h"
#include "core/runtime/memory.h"
#include "core/runtime/placement.h"
#include "core/simd/subnormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace handgrad {
namespace {

// Long enough to bridge the Python between two kernels, short enough to cost a neighbour little.
constexpr auto kSpin = std::chrono::microseconds(100);
// In ns: how often a signal is asked for. Taking the GIL from a thread that computes in Python
// takes 5 ms, and may be a twentieth of the time.
constexpr long kBetweenChecks = 50'000'000, kMostBetweenChecks = 500'000'000, kCheckShare = 20;
// In ns: how often it is looked up which cores the process may use, and after how long threads that
// could not be started are tried again.
constexpr long kRefresh = 1'000'000'000;

class Pool;

struct ThreadWorkspace {
    MemoryBlock slots[static_cast<int>(WorkspaceSlot::kCount)];
    bool large = false;

    ThreadWorkspace() = default;
    ThreadWorkspace(const ThreadWorkspace&) = delete;
    ~ThreadWorkspace() {
        for (MemoryBlock& slot : slots)
            if (slot.data != nullptr) free_block(slot);
    }
};

// All that a thread has of its own.
struct ThreadState {
    CallSettings settings;
    Pool* job = nullptr;  // whose chunks it is taking
    int uninterrupted = 0;
    long next_check = 0;
    ThreadWorkspace workspace;
};

HANDGRAD_THREAD_LOCAL ThreadState* own_state = nullptr;

// A worker lives as long as the process; other threads give their state back as they end.
pthread_key_t state_key;
const bool have_key = pthread_key_create(&state_key, [](void* state) {
                          delete static_cast<ThreadState*>(state);
                      }) == 0;

ThreadState& make_state() {
    auto state = std::make_unique<ThreadState>();
    if (!have_key || pthread_setspecific(state_key, state.get()) != 0) throw std::bad_alloc();
    return *(own_state = state.release());
}

inline ThreadState& this_thread() { return own_state != nullptr ? *own_state : make_state(); }

// Thrown if another thread has ended the job, without a report of its own.
struct Stopped {};

std::atomic<void (*)()> interrupt_check = nullptr;
std::atomic<pthread_t> main_thread;

bool may_be_interrupted(const ThreadState& state) {
    return state.uninterrupted == 0 && interrupt_check.load(std::memory_order_relaxed) != nullptr &&
           pthread_equal(main_thread.load(std::memory_order_relaxed), pthread_self());
}

// A handler of a signal may call kernels: it finds a thread that is doing nothing.
void check_interrupt(ThreadState& state) {
    const long now = coarse_time();
    if (now < state.next_check) return;
    state.next_check = now + kBetweenChecks;
    struct HandlerScope {
        ThreadState& state;
        Pool* job = std::exchange(state.job, nullptr);
        ThreadWorkspace others;
        const ScopedFloatMode mode{FloatMode::of_this_thread().exact()};
        explicit HandlerScope(ThreadState& state) : state(state) { swap(); }
        ~HandlerScope() {
            swap();
            state.job = job;
        }
        void swap() {
            std::swap(state.workspace.slots, others.slots);
            std::swap(state.workspace.large, others.large);
        }
    } const handler_scope(state);
    interrupt_check.load(std::memory_order_relaxed)();
    const long after = coarse_time();
    state.next_check =
        after + std::clamp(kCheckShare * (after - now), kBetweenChecks, kMostBetweenChecks);
}

inline void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// True if done() became true before so long had passed.
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
    explicit Worker(int index) : index(index) {}

    const int index;
    pthread_t handle;
    ThreadState state;
    std::atomic<unsigned long> news{0};  // the number of the last job that it was told of
    std::atomic<bool> asleep{false};
    std::mutex mutex;
    std::condition_variable wake;
    std::atomic<int> core{-1};  // where it was last seen
    std::atomic<bool> inside{false};
    // The caller's alone.
    long cpu_time = 0;
    ScopedAffinity affinity;
};

// Never destroyed: its workers live as long as the process.
class Pool {
  public:
    // One job; the thread that calls has the pool to itself. `threads` is the most that take part.
    void run(long count, long chunk, void (*run)(void*, long, long), void* context, int threads) {
        ThreadState& caller = this_thread();
        taking_part_ = start_workers(threads - 1);
        run_ = run;
        context_ = context;
        count_ = count;
        chunk_ = chunk;
        settings_ = caller.settings;
        mode_ = FloatMode::of_this_thread();
        caller_ = &caller;
        next_.store(0, std::memory_order_relaxed);
        stopped_.store(false, std::memory_order_relaxed);
        open_.store(true);
        announce_apart();
        take_chunks(caller);
        // A worker that enters after this finds the job closed; those inside are waited for.
        open_.store(false);
        await_workers(caller);
        caller_ = nullptr;
        if (stopped_.load()) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

    // In a forked child, which has the thread that forked and no other: where that one is in the
    // middle of a job, its workers have left chunks undone.
    void abandon(const ThreadState* thread) {
        if (thread == nullptr || caller_ != thread) return;
        new (&mutex_) std::mutex;
        new (&left_) std::condition_variable;
        inside_.store(0);
        taking_part_ = 0;
        fail(std::make_exception_ptr(
            std::runtime_error("the process was forked by a signal's handler within a kernel")));
    }

  private:
    // The number of workers in the end: the system may refuse to start any.
    int start_workers(int wanted) noexcept {
        int have = static_cast<int>(workers_.size());
        const long now = coarse_time();
        if (now >= next_refresh_) {
            next_refresh_ = now + kRefresh;
            refused_ = false;
            if (const Affinity found = Affinity::of_process(); !(found == affinity_)) {
                affinity_ = found;
                for (const auto& worker : workers_) affinity_.give_to(worker->handle);
            }
        }
        while (have < wanted && !refused_) {
            try {
                start_worker();
                have++;
            } catch (const std::exception&) {
                refused_ = true;
            }
        }
        return std::min(have, wanted);
    }

    void start_worker() {
        workers_.reserve(workers_.size() + 1);
        auto worker = std::make_unique<Worker>(static_cast<int>(workers_.size()));
        // Signals are for the threads of the program, whose sleep they may have to end.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        const struct Restore {
            const sigset_t& before;
            ~Restore() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        } restore{before};
        std::thread thread([this, &self = *worker] { work(self); });
        worker->handle = thread.native_handle();
        thread.detach();
        affinity_.give_to(worker->handle);
        workers_.push_back(std::move(worker));
    }

    // If all cores are busy, the system leaves a worker on the core where it was last, even if that
    // is the caller's: they would take turns on it while a neighbour has the other.
    void announce_apart() {
        const int core = current_core();
        if (core < 0) return announce();
        caller_core_.store(core, std::memory_order_relaxed);
        bool held = false;
        for_workers([&](Worker& worker) {
            if (worker.core.load(std::memory_order_relaxed) != core) return;
            worker.affinity.off(worker.handle, core);
            worker.core.store(-1, std::memory_order_relaxed);
            held = true;
        });
        announce();
        if (!held) return;
        for_workers([](Worker& worker) { worker.affinity.release(worker.handle); });
    }

    void announce() {
        generation_++;
        for_workers([&](Worker& worker) {
            worker.news.store(generation_);
            if (!worker.asleep.load()) return;
            std::lock_guard lock(worker.mutex);
            worker.wake.notify_one();
        });
    }

    // The workers that take part in this job.
    template <class Body>
    void for_workers(const Body& body) {
        for (int i = 0; i < taking_part_; i++) body(*workers_[static_cast<std::size_t>(i)]);
    }

    void take_chunks(ThreadState& thread) noexcept {
        const CallSettings before = std::exchange(thread.settings, settings_);
        thread.job = this;
        const bool interruptible = may_be_interrupted(thread);
        try {
            while (!stopped()) {
                const long begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
                if (begin >= count_) break;
                run_(context_, begin, std::min(begin + chunk_, count_));
                if (interruptible) check_interrupt(thread);
            }
        } catch (const Stopped&) {
        } catch (...) {
            fail(std::current_exception());
        }
        thread.job = nullptr;
        thread.settings = before;
    }

    void fail(std::exception_ptr error) noexcept {
        if (!stopped_.exchange(true)) error_ = std::move(error);
    }

    void work(Worker& self) noexcept {
        own_state = &self.state;
        unsigned long seen = 0;
        for (;;) {
            await_news(self, seen);
            seen = self.news.load();
            self.core.store(current_core(), std::memory_order_relaxed);
            self.inside.store(true, std::memory_order_relaxed);
            inside_.fetch_add(1);
            // It may have come too late for the job it was told of, to another that has enough.
            if (open_.load() && self.index < taking_part_) {
                const ScopedFloatMode same(mode_);
                take_chunks(self.state);
                free_large(self.state.workspace);
            }
            self.inside.store(false, std::memory_order_relaxed);
            if (inside_.fetch_sub(1) == 1 && waiting_.load()) {
                std::lock_guard lock(mutex_);
                left_.notify_one();
            }
        }
    }

    void await_workers(ThreadState& caller) noexcept {
        const auto left = [&] { return inside_.load() == 0; };
        if (spin(kSpin / 2, left)) return;
        for_workers([](Worker& worker) { worker.cpu_time = cpu_time(worker.handle); });
        if (spin(kSpin / 2, left)) return;
        yield_core();
        const bool interruptible = may_be_interrupted(caller);
        std::unique_lock lock(mutex_);
        waiting_.store(true);
        while (!left_.wait_for(lock, std::chrono::nanoseconds(kBetweenChecks), left)) {
            if (!interruptible || stopped()) continue;
            lock.unlock();
            try {
                check_interrupt(caller);
            } catch (...) {
                fail(std::current_exception());
            }
            lock.lock();
        }
        waiting_.store(false);
    }

    // A worker that the system has preempted in the middle of a chunk gets the core that this
    // thread is about to leave. The system might move it, but not one that ran a moment ago.
    void yield_core() {
        const int core = current_core();
        for (int i = 0; i < taking_part_; i++) {
            Worker& worker = *workers_[static_cast<std::size_t>(i)];
            if (!worker.inside.load(std::memory_order_relaxed)) continue;
            if (worker.core.load(std::memory_order_relaxed) == core) return;
            const long time = cpu_time(worker.handle);
            if (time < 0 || time != worker.cpu_time) continue;
            worker.affinity.on(worker.handle, core);
            worker.affinity.release(worker.handle);
            worker.core.store(core, std::memory_order_relaxed);
            return;
        }
    }

    void await_news(Worker& self, unsigned long seen) noexcept {
        const auto news = [&] { return self.news.load() != seen; };
        // On the caller's core spinning would only keep the caller from making news.
        const bool beside = current_core() != caller_core_.load(std::memory_order_relaxed);
        if (beside ? spin(kSpin, news) : news()) return;
        std::unique_lock lock(self.mutex);
        self.asleep.store(true);
        self.wake.wait(lock, news);
        self.asleep.store(false);
    }

    static void free_large(ThreadWorkspace& workspace) noexcept;
    friend class handgrad::CallScope;

    void (*run_)(void*, long, long) = nullptr;
    void* context_ = nullptr;
    long count_ = 0;
    long chunk_ = 1;
    CallSettings settings_;
    FloatMode mode_ = FloatMode::of_this_thread();
    int taking_part_ = 0;
    const ThreadState* caller_ = nullptr;
    std::exception_ptr error_;
    unsigned long generation_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
    Affinity affinity_ = Affinity::of_process();
    long next_refresh_ = 0;
    bool refused_ = false;
    alignas(64) std::atomic<long> next_{0};
    alignas(64) std::atomic<bool> open_{false};
    std::atomic<bool> stopped_{false};
    std::atomic<int> caller_core_{-2};
    std::atomic<int> inside_{0};
    std::atomic<bool> waiting_{false};
    std::mutex mutex_;
    std::condition_variable left_;
};

Pool* pool = nullptr;
// One job at a time: a second Python thread that computes runs its own job serially.
std::atomic<bool> pool_in_use = false;

// Its threads are gone, and with them all that the old pool was good for.
void start_anew_in_child() {
    if (pool != nullptr) pool->abandon(own_state);
    pool = nullptr;
    pool_in_use.store(false);
    main_thread.store(pthread_self());
}

std::atomic<int> default_count = 0;
std::atomic<bool> default_follows = true;
std::atomic<int> cores = 0;
std::atomic<long> cores_known_until = 0;

// The number of cores that the process may use, as it was within the last second.
int allowed_cores() {
    const long now = coarse_time();
    if (now >= cores_known_until.load(std::memory_order_relaxed)) {
        int count = Affinity::of_process().count();
        if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
        cores.store(std::clamp(count, 1, kMostThreads), std::memory_order_relaxed);
        cores_known_until.store(now + kRefresh, std::memory_order_relaxed);
    }
    return cores.load(std::memory_order_relaxed);
}

}  // namespace

void set_default_threads(int count, bool follows_affinity) {
    default_count.store(count, std::memory_order_relaxed);
    default_follows.store(follows_affinity, std::memory_order_relaxed);
    cores_known_until.store(0, std::memory_order_relaxed);
}

int default_threads() {
    const int count = default_count.load(std::memory_order_relaxed);
    if (!default_follows.load(std::memory_order_relaxed)) return std::max(count, 1);
    const int allowed = allowed_cores();
    return count > 0 ? std::min(count, allowed) : allowed;
}

int get_threads() {
    const int own = own_state == nullptr ? 0 : own_state->settings.threads;
    return own > 0 ? own : default_threads();
}

bool precision_bf16() { return own_state != nullptr && own_state->settings.bf16; }

CallScope::CallScope(CallSettings settings)
    : before_(std::exchange(this_thread().settings, settings)) {}

CallScope::~CallScope() {
    ThreadState& state = *own_state;
    state.settings = before_;
    if (state.job == nullptr) Pool::free_large(state.workspace);
}

Uninterrupted::Uninterrupted() { this_thread().uninterrupted++; }
Uninterrupted::~Uninterrupted() { own_state->uninterrupted--; }

void set_interrupt_check(void (*check)(), pthread_t main) {
    main_thread.store(main);
    interrupt_check.store(check);
}

void handle_forks_of_threads() {
    if (pthread_atfork(nullptr, nullptr, start_anew_in_child) != 0) throw std::bad_alloc();
}

void breathe() {
    ThreadState& state = this_thread();
    if (state.job != nullptr && state.job->stopped()) throw Stopped();
    if (may_be_interrupted(state)) check_interrupt(state);
}

void run_parallel(long count, long chunk, void (*run)(void*, long, long), void* context) {
    const ThreadState& state = this_thread();
    const int threads = state.job == nullptr ? get_threads() : 1;
    if (threads == 1 || pool_in_use.exchange(true)) {
        for (long begin = 0; begin < count; begin += chunk) {
            run(context, begin, std::min(begin + chunk, count));
            breathe();
        }
        return;
    }
    const struct Release {
        ~Release() { pool_in_use.store(false); }
    } release;
    if (pool == nullptr) pool = new Pool;
    pool->run(count, chunk, run, context, threads);
}

namespace {

constexpr std::size_t kLargeWorkspace = 2 << 20;

}  // namespace

void Pool::free_large(ThreadWorkspace& workspace) noexcept {
    if (!workspace.large) return;
    workspace.large = false;
    for (MemoryBlock& slot : workspace.slots)
        if (slot.capacity > kLargeWorkspace) free_block(std::exchange(slot, {}));
}

void* thread_workspace_bytes(WorkspaceSlot slot, long count, long size) {
    ThreadWorkspace& workspace = this_thread().workspace;
    MemoryBlock& block = workspace.slots[static_cast<int>(slot)];
    if (!kExactBlocks && count >= 0 &&
        static_cast<std::size_t>(count) <= block.capacity / static_cast<std::size_t>(size) &&
        block.data != nullptr)
        return block.data;
    if (block.data != nullptr) free_block(std::exchange(block, {}));
    // Packed micro-panels are read over and over: huge pages spare the look-up of many small ones.
    const long huge = static_cast<long>(kLargeWorkspace) / size;
    const bool round = !kExactBlocks && count > huge / 16 && count < huge;
    block = allocate_block(round ? huge : count, size);
    workspace.large |= block.capacity > kLargeWorkspace;
    return block.data;
}

}  // namespace handgrad
