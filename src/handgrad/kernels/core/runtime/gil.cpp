#include "core/runtime/gil.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "core/binding/binding.h"

namespace handgrad {
namespace {

std::atomic<bool> ending = false;
std::atomic<std::thread::id> last_thread;  // the one that ends the program
std::atomic<int> returning = 0;

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

// To be called as the program ends, by the thread that ends it, while the others still may run.
// Those on their way back are let in first.
void keep_threads_out() {
    last_thread = std::this_thread::get_id();
    ending = true;
    const nb::gil_scoped_release release;
    while (returning.load() > 0) rest();
}

const Registrar registrar([](nb::module_& m) { m.def("keep_threads_out", &keep_threads_out); });

}  // namespace

void take_gil_back(PyThreadState* state) noexcept {
    returning++;
    if (ending.load() && last_thread.load() != std::this_thread::get_id()) {
        returning--;
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyEval_RestoreThread(state);
    returning--;
}

}  // namespace handgrad
