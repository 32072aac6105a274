// A small pool of threads: parallel_for with dynamic chunks.
//
// The calling thread always works too and takes every chunk nobody else has taken, so a worker that
// the system has preempted delays nobody. Between jobs a worker spins for a short while and then
// sleeps. Work is split by chunk, never by thread: results cannot depend on the number of threads.
//
// An exception in a chunk, on any thread, ends the job: no further chunk is handed out, the caller
// waits until every worker has left, and rethrows the first exception. A caller that is Python's
// main thread asks now and then whether a signal has come (see breathe), and what a signal's
// handler raises ends the job in the same way.
#pragma once

#include <pthread.h>

#include <type_traits>

// A thread-local variable in the memory that every thread starts with. Any other is allocated when
// a thread first asks for it, and where that fails glibc ends the process.
#if defined(__ELF__)
#define HANDGRAD_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local
#else
#define HANDGRAD_THREAD_LOCAL thread_local
#endif

namespace handgrad {

// The largest number of threads that may be asked for.
constexpr int kMostThreads = 1024;

// Settings of the kernel's call that this thread is making; a worker has those of its job.
struct CallSettings {
    int threads = 0;  // 0: the default
    bool bf16 = false;
};

// Makes these the settings of this thread as long as it lives, then gives back large workspace.
class CallScope {
  public:
    explicit CallScope(CallSettings settings);
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

  private:
    CallSettings before_;
};

// Number of threads parallel_for uses for this call, the caller included.
int get_threads();
// True if float32 products of this call are rounded to bfloat16.
bool precision_bf16();

// The number of threads of calls that set none: `count`, or with `follows_affinity` fewer where the
// process may use fewer cores; that is looked at once a second.
void set_default_threads(int count, bool follows_affinity = false);
int default_threads();

// The job as the pool takes it: run(context, begin, end) for chunks of [0, count).
void run_parallel(long count, long chunk, void (*run)(void*, long, long), void* context);

// body(begin, end) over [0, count) in chunks of `chunk`; serial when called from inside a job.
template <class Body>
void parallel_for(long count, long chunk, Body&& body) {
    if (count <= 0) return;
    if (count <= chunk) {
        body(0L, count);
        return;
    }
    using Plain = std::remove_reference_t<Body>;
    run_parallel(
        count, chunk,
        [](void* context, long begin, long end) { (*static_cast<Plain*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
}

// To be called every 100 ms or more often by whatever takes longer. Throws where the job of this
// thread has ended already, or where a signal's handler raised. It costs some 10 ns.
void breathe();

// Sets what breathe() calls on the main thread, at most every 50 ms; it may throw. `check` may run
// any other call meanwhile. In a forked child the main thread is the one that forked.
void set_interrupt_check(void (*check)(), pthread_t main);

// To be called once, before the first fork.
void handle_forks_of_threads();

// As long as one of these lives, this thread's calls are not interrupted: a step of an optimizer is
// done as a whole or not at all.
class Uninterrupted {
  public:
    Uninterrupted();
    ~Uninterrupted();
    Uninterrupted(const Uninterrupted&) = delete;
    Uninterrupted& operator=(const Uninterrupted&) = delete;
};

// Workspace of this thread that keeps its contents only until the next call with the same slot:
// packed micro-panels and partial sums live here, and no step allocates fresh pages. A slot that
// has grown large is given back to the pool (memory.h) at the end of the call.
enum class WorkspaceSlot { kPanelA, kPanelB, kSums, kImage, kRow, kCount };
void* thread_workspace_bytes(WorkspaceSlot slot, long count, long size);

template <class T>
T* thread_workspace(WorkspaceSlot slot, long count) {
    return static_cast<T*>(thread_workspace_bytes(slot, count, static_cast<long>(sizeof(T))));
}

}  // namespace handgrad
