// The thread pool, to be run under ThreadSanitizer: jobs of many sizes, one after another and from
// two threads at once, a job inside a job, sleeping workers and callers, busy neighbours, another
// number of threads, a fork.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/threads.h"

using namespace handgrad;

namespace {

// Every value is written by one chunk and read by the caller afterwards, in plain memory: whatever
// the pool fails to order is a race.
void fill_and_add(long count, long chunk) {
    std::vector<long> values(static_cast<std::size_t>(count));
    parallel_for(count, chunk, [&](long begin, long end) {
        long* scratch_values = scratch<long>(Scratch::kRow, end - begin);
        for (long i = begin; i < end; i++) scratch_values[i - begin] = i;
        parallel_for(end - begin, 2, [&](long first, long last) {
            for (long i = first; i < last; i++)
                values[static_cast<std::size_t>(begin + i)] = scratch_values[i];
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

}  // namespace

int main() {
    for (int threads : {2, 4, 1, 3}) {
        set_threads(threads);
        many_jobs(2000);
        std::thread other([] { many_jobs(1000); });
        many_jobs(1000);
        other.join();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the workers are asleep now
        long_waits();
        many_jobs(10);
        beside_neighbours();
    }
    if (const pid_t child = fork(); child == 0) {
        many_jobs(100);
        _exit(0);
    } else {
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    many_jobs(100);
    set_threads(1);  // the workers are joined
    std::puts("pool: no races");
}
