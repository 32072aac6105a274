// The thread pool and the store of memory, to be run under sanitizers: jobs of many sizes, one after
// another and from two threads at once, a job inside a job, sleeping workers and callers,
// busy neighbours, another number of threads in every call, exceptions and interrupts, forks.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/memory.h"
#include "core/runtime/threads.h"

using namespace handgrad;

namespace {

// Every value is written by one chunk and read by the caller afterwards, in plain memory: whatever
// the pool fails to order is a race.
void fill_and_add(long count, long chunk) {
    std::vector<long> values(static_cast<std::size_t>(count));
    parallel_for(count, chunk, [&](long begin, long end) {
        long* own_values = thread_workspace<long>(WorkspaceSlot::kRow, end - begin);
        for (long i = begin; i < end; i++) own_values[i - begin] = i;
        parallel_for(end - begin, 2, [&](long first, long last) {
            for (long i = first; i < last; i++)
                values[static_cast<std::size_t>(begin + i)] = own_values[i];
        });
    });
    long sum = 0;
    for (long value : values) sum += value;
    if (sum != count * (count - 1) / 2) {
        std::printf("pool: %ld values add up to %ld\n", count, sum);
        std::abort();
    }
}

void many_jobs(int times) {
    for (int i = 0; i < times; i++) fill_and_add(1 + i % 97, 1 + i % 7);
}

// Whoever comes to the end of the job first has to wait for the others, asleep.
void long_waits() {
    for (long slow = 0; slow < 3; slow++) {
        std::vector<long> values(3);
        parallel_for(3, 1, [&](long begin, long) {
            if (begin == slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            values[static_cast<std::size_t>(begin)] = begin;
        });
        if (values[0] + values[1] + values[2] != 3) std::abort();
    }
}

// Workers that are put aside in the middle of chunks are moved from core to core, and may in the
// end use all cores that they might use before.
void beside_neighbours() {
    std::atomic<bool> stop = false;
    std::vector<std::thread> neighbours;
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); i++)
        neighbours.emplace_back([&] {
            while (!stop) {
            }
        });
    for (int i = 0; i < 40; i++) fill_and_add(100'000, 10'000);
    stop = true;
    for (auto& neighbour : neighbours) neighbour.join();
    cpu_set_t own, other;
    sched_getaffinity(0, sizeof own, &own);
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        const int id = std::stoi(task.path().filename());
        if (sched_getaffinity(id, sizeof other, &other) != 0 || !CPU_EQUAL(&own, &other))
            std::abort();
    }
}

void expect(bool right, const char* what) {
    if (right) return;
    std::printf("pool: %s\n", what);
    std::abort();
}

// Whoever throws, the job has ended when the caller hears of it, and the next one is right.
void exceptions() {
    for (int i = 0; i < 300; i++) {
        std::vector<int> frame(64);
        std::atomic<int> inside = 0;
        bool caught = false;
        try {
            parallel_for(64, 1, [&](long begin, long) {
                inside++;
                frame[static_cast<std::size_t>(begin)] = 1;
                if (begin == i % 64) {
                    inside--;
                    throw std::runtime_error("chunk");
                }
                // Ends early where another chunk has thrown.
                for (int n = 0; n < 50; n++) {
                    try {
                        breathe();
                    } catch (...) {
                        inside--;
                        throw;
                    }
                }
                inside--;
            });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        expect(caught, "an exception was lost");
        expect(inside == 0, "a chunk runs on after its job");
        fill_and_add(1000, 10);
    }
}

// An interrupt that comes while the caller computes, or while it waits for the workers.
std::atomic<bool> interrupted = false;
void interrupts() {
    set_interrupt_check(
        [] {
            fill_and_add(50, 5);  // as the handler of a signal may
            if (interrupted.exchange(false)) throw std::runtime_error("interrupt");
        },
        pthread_self());
    for (int i = 0; i < 6; i++) {
        std::thread later([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            interrupted = true;
        });
        bool caught = false;
        try {
            for (int n = 0; n < 1000; n++)
                parallel_for(4, 1, [&](long begin, long) {
                    // The first chunk, mostly the caller's, is short every other time.
                    for (int turn = 0; turn < (begin == 0 && i % 2 ? 1 : 40); turn++) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(5));
                        breathe();
                    }
                });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        later.join();
        expect(caught, "an interrupt was lost");
        fill_and_add(1000, 10);
    }
}

// Calls with other numbers of threads, from several threads at once; workers have those of their
// call.
void settings_of_calls() {
    std::vector<std::thread> callers;
    for (int own = 1; own <= 4; own++)
        callers.emplace_back([own] {
            for (int i = 0; i < 300; i++) {
                const CallScope scope({own, own % 2 == 0});
                parallel_for(20, 1, [&](long, long) {
                    expect(get_threads() == own, "another number of threads");
                    expect(precision_bf16() == (own % 2 == 0), "another precision");
                });
                fill_and_add(100, 7);
            }
        });
    for (auto& caller : callers) caller.join();
}

// Blocks of many sizes taken in one thread and given back in another.
void memory() {
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 3; seed++)
        threads.emplace_back([seed] {
            unsigned random = seed;
            std::vector<MemoryBlock> blocks;
            for (int i = 0; i < 3000; i++) {
                random = random * 1664525 + 1013904223;
                const long size = static_cast<long>(random >> (8 + random % 16));
                blocks.push_back(allocate_block(size, 1));
                expect(static_cast<long>(blocks.back().capacity) >= size, "a block is too small");
                *static_cast<char*>(blocks.back().data) = 1;
                if (blocks.size() > 8) {
                    free_block(blocks[random % 8]);
                    blocks.erase(blocks.begin() + random % 8);
                }
                if (i % 1000 == 0) release_blocks();
            }
            for (const MemoryBlock& block : blocks) free_block(block);
        });
    for (auto& thread : threads) thread.join();
}

// Forks while other threads compute and take memory.
void forks() {
    std::atomic<bool> stop = false;
    std::vector<std::thread> others;
    for (int i = 0; i < 2; i++)
        others.emplace_back([&] {
            while (!stop) {
                fill_and_add(500, 10);
                free_block(allocate_block(100'000, 1));
            }
        });
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        if (child == 0) {
            const CallScope scope({3, false});
            free_block(allocate_block(200'000, 1));
            many_jobs(20);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        expect(status == 0, "a child failed");
    }
    stop = true;
    for (auto& thread : others) thread.join();
}

}  // namespace

int main() {
    handle_forks_of_memory();
    handle_forks_of_threads();
    for (int threads : {2, 4, 1, 3}) {
        set_default_threads(threads);
        many_jobs(2000);
        std::thread other([] { many_jobs(1000); });
        many_jobs(1000);
        other.join();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the workers are asleep now
        long_waits();
        many_jobs(10);
        beside_neighbours();
        exceptions();
    }
    settings_of_calls();
    memory();
    interrupts();
    // ThreadSanitizer does not follow a process of several threads into its child.
#if !defined(__SANITIZE_THREAD__)
    forks();
#endif
    many_jobs(100);
    std::puts("pool: no faults");
}
