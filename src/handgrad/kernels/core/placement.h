// Where threads run, as far as Linux tells and can be told; elsewhere nothing is known or done.
#pragma once

#include <pthread.h>

#if defined(__linux__)
#include <sched.h>
#include <time.h>
#endif

namespace handgrad {

#if defined(__linux__)

inline int current_core() { return sched_getcpu(); }

// CPU time in ns: it stands still while the system has put the thread aside. Asking for it makes
// Linux settle the accounts of a thread that runs, and perhaps put it aside: seldom is better.
inline long cpu_time(pthread_t thread) {
    clockid_t clock;
    timespec time;
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
    return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

// Keeps a thread on one core or off it. If it waits for a core it moves at once; if it sleeps, when
// it is woken. Nothing happens where that leaves it no core that it may use.
class Hold {
  public:
    void on(pthread_t thread, int core) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        confine(thread, [&](const cpu_set_t& allowed) {
            cpu_set_t left;
            CPU_AND(&left, &allowed, &one);
            return left;
        });
    }

    void off(pthread_t thread, int core) {
        confine(thread, [&](cpu_set_t left) {
            CPU_CLR(core, &left);
            return left;
        });
    }

    void release(pthread_t thread) {
        if (held_) pthread_setaffinity_np(thread, sizeof allowed_, &allowed_);
        held_ = false;
    }

  private:
    template <class Left>
    void confine(pthread_t thread, const Left& left_of) {
        if (pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) return;
        const cpu_set_t left = left_of(allowed_);
        if (CPU_COUNT(&left) == 0) return;
        held_ = pthread_setaffinity_np(thread, sizeof left, &left) == 0;
    }

    cpu_set_t allowed_;
    bool held_ = false;
};

#else

inline int current_core() { return -1; }
inline long cpu_time(pthread_t) { return -1; }

struct Hold {
    void on(pthread_t, int) {}
    void off(pthread_t, int) {}
    void release(pthread_t) {}
};

#endif

}  // namespace handgrad
