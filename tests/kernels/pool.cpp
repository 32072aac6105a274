// The thread pool, to be run under ThreadSanitizer: jobs of many sizes, one after another and from
// two threads at once, a job inside a job, sleeping workers and callers, another number of threads,
// a fork.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
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
