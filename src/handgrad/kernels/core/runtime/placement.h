// The cores that threads run on, as far as Linux tells and can be told; elsewhere nothing is known
// or done.
#pragma once

#include <pthread.h>

#if defined(__linux__)
#include <sched.h>
#include <time.h>
#include <unistd.h>
#endif

namespace handgrad {

#if defined(__linux__)

inline int current_core() { return sched_getcpu(); }

// CPU time in ns: it stands still while the system has preempted the thread. Asking for it makes
// Linux settle the accounts of a thread that runs, and perhaps preempt it: seldom is better.
inline long cpu_time(pthread_t thread) {
    clockid_t clock;
    timespec time;
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
    return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

// The cores that the process may use: those of its main thread. `known` is false where there are
// more than a cpu_set_t has room for.
struct Affinity {
    cpu_set_t cores;
    bool known;

    static Affinity of_process() {
        Affinity found;
        CPU_ZERO(&found.cores);
        found.known = sched_getaffinity(getpid(), sizeof found.cores, &found.cores) == 0;
        return found;
    }
    int count() const { return known ? CPU_COUNT(&cores) : 0; }
    bool operator==(const Affinity& other) const {
        return known == other.known && CPU_EQUAL(&cores, &other.cores);
    }
    void give_to(pthread_t thread) const {
        if (known) pthread_setaffinity_np(thread, sizeof cores, &cores);
    }
};

// Keeps a thread on one core or off it, until it is released. If it waits for a core it moves at
// once; if it sleeps, when it is woken. Nothing happens where that leaves it no core that it may
// use, and what somebody else has set meanwhile stays.
class ScopedAffinity {
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
        if (!held_) return;
        held_ = false;
        cpu_set_t now;
        if (pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &left_))
            pthread_setaffinity_np(thread, sizeof allowed_, &allowed_);
    }

  private:
    template <class Left>
    void confine(pthread_t thread, const Left& left_of) {
        if (pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) return;
        left_ = left_of(allowed_);
        if (CPU_COUNT(&left_) == 0) return;
        held_ = pthread_setaffinity_np(thread, sizeof left_, &left_) == 0;
    }

    cpu_set_t allowed_, left_;
    bool held_ = false;
};

#else

inline int current_core() { return -1; }
inline long cpu_time(pthread_t) { return -1; }

struct Affinity {
    static Affinity of_process() { return {}; }
    int count() const { return 0; }
    bool operator==(const Affinity&) const { return true; }
    void give_to(pthread_t) const {}
};

struct ScopedAffinity {
    void on(pthread_t, int) {}
    void off(pthread_t, int) {}
    void release(pthread_t) {}
};

#endif

}  // namespace handgrad
