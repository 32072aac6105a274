// A small pool of threads: parallel_for with dynamic chunks.
//
// The calling thread always works too and takes every chunk nobody else has taken, so a worker that
// the system has put aside delays nobody. Between jobs a worker spins for a short while and then
// sleeps. Work is split by chunk, never by thread: results cannot depend on the number of threads.
#pragma once

#include <type_traits>

namespace handgrad {

// Number of threads parallel_for uses, the caller included.
int get_threads();
void set_threads(int count);

// The job as the pool sees it: run(context, begin, end) for chunks of [0, count).
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

// Memory of this thread that keeps its contents only until the next call with the same slot:
// packed panels and partial sums live here, and no step allocates fresh pages.
enum class Scratch { kPanelA, kPanelB, kSums, kImage, kRow, kCount };
void* scratch_bytes(Scratch slot, long bytes);

template <class T>
T* scratch(Scratch slot, long count) {
    return static_cast<T*>(scratch_bytes(slot, count * static_cast<long>(sizeof(T))));
}

}  // namespace handgrad
