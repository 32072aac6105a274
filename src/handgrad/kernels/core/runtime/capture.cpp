// Capture and replay: the calls of kernels that a piece of Python makes are kept with their
// arguments, and made again without Python, as CUDA graphs do on a GPU.
//
// While a capture is active on this thread, every call of a kernel is appended to it. A replayed
// call reads and writes the same arrays each time, so a new batch is copied to where the first one
// was. A call that returns a value has given Python something that a replay could not: it
// invalidates the capture.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "core/runtime/capture.h"

#include <numpy/arrayobject.h>

#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/binding/kernel.h"
#include "core/gemm/packs.h"
#include "core/runtime/settings.h"

namespace handgrad {
namespace {

class Capture;
HANDGRAD_THREAD_LOCAL Capture* active = nullptr;

class Capture {
  public:
    // The weights of a frozen one never change: what is packed of them is kept.
    Capture(nb::tuple batch, long most_bytes, bool frozen)
        : batch_(std::move(batch)), most_bytes_(most_bytes), frozen_(frozen) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(batch_.ptr()); i++)
            if (!PyArray_Check(PyTuple_GET_ITEM(batch_.ptr(), i)))
                throw nb::type_error("Capture: a batch is a tuple of NumPy arrays");
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() { end(); }

    void begin() {
        settings_ = current_settings();
        if (active != nullptr) active->invalidate("another capture began");
        active = this;
    }
    void end() {
        if (active == this) active = nullptr;
    }

    // Nothing is replayed any more; the first reason is kept.
    void invalidate(const char* reason) {
        if (reason_.empty()) reason_ = reason;
        calls_.clear();
    }
    const char* reason() const { return reason_.c_str(); }
    long bytes() const { return bytes_; }
    std::size_t size() const { return calls_.size(); }

    void append(PyObject* kernel, PyObject* const* arguments, Py_ssize_t count) {
        if (!reason_.empty()) return;
        Call call{nb::borrow(kernel), {}};
        for (Py_ssize_t i = 0; i < count; i++) {
            count_bytes(arguments[i]);
            call.arguments.push_back(nb::borrow(arguments[i]));
        }
        calls_.push_back(std::move(call));
        if (bytes_ > most_bytes_) invalidate("its arrays take more memory than a capture may");
    }

    // Makes every call once more, in order, on another batch, at the precision of the capture.
    // Returns false, and does nothing, if its arrays have other shapes or types or are not
    // C-contiguous.
    bool replay(nb::tuple batch) {
        const Py_ssize_t count = PyTuple_GET_SIZE(batch_.ptr());
        if (PyTuple_GET_SIZE(batch.ptr()) != count) return false;
        for (Py_ssize_t i = 0; i < count; i++)
            if (!are_alike(PyTuple_GET_ITEM(batch.ptr(), i), input(i))) return false;
        for (Py_ssize_t i = 0; i < count; i++)
            std::memcpy(
                PyArray_DATA(input(i)),
                PyArray_DATA(reinterpret_cast<PyArrayObject*>(PyTuple_GET_ITEM(batch.ptr(), i))),
                static_cast<std::size_t>(PyArray_NBYTES(input(i))));
        struct Replaying {
            Packs& packs;
            bool done = false;
            Replaying(Packs& packs, bool frozen) : packs(packs) {
                replaying = true;
                active_packs = frozen ? &packs : nullptr;
            }
            ~Replaying() {
                replaying = false;
                active_packs = nullptr;
                if (!done) packs.clear();
            }
        } replay_scope(packs_, frozen_);
        const CallScope scope({current_settings().threads, settings_.bf16});
        for (const Call& call : calls_) {
            call.make();
            breathe();
        }
        replay_scope.done = true;
        return true;
    }

  private:
    struct Call {
        nb::object kernel;
        std::vector<nb::object> arguments;

        void make() const {
            static_assert(sizeof(nb::object) == sizeof(PyObject*));
            const auto* each = reinterpret_cast<PyObject* const*>(arguments.data());
            Py_DECREF(make_call(kernel.ptr(), each, static_cast<Py_ssize_t>(arguments.size())));
        }
    };

    PyArrayObject* input(Py_ssize_t i) const {
        return reinterpret_cast<PyArrayObject*>(PyTuple_GET_ITEM(batch_.ptr(), i));
    }

    static bool are_alike(PyObject* given, PyArrayObject* input) {
        if (!PyArray_CheckExact(given)) return false;
        auto* array = reinterpret_cast<PyArrayObject*>(given);
        return PyArray_TYPE(array) == PyArray_TYPE(input) && PyArray_ISCARRAY_RO(array) &&
               PyArray_SAMESHAPE(array, input);
    }

    // A view keeps all of the array whose memory it shows.
    void count_bytes(PyObject* argument) {
        if (!PyArray_Check(argument)) return;
        auto* array = reinterpret_cast<PyArrayObject*>(argument);
        for (PyObject* base; (base = PyArray_BASE(array)) != nullptr && PyArray_Check(base);)
            array = reinterpret_cast<PyArrayObject*>(base);
        if (counted_.insert(PyArray_DATA(array)).second)
            bytes_ += static_cast<long>(PyArray_NBYTES(array));
    }

    nb::tuple batch_;
    std::vector<Call> calls_;
    std::unordered_set<void*> counted_;
    long bytes_ = 0;
    long most_bytes_;
    bool frozen_;
    Packs packs_;
    CallSettings settings_;
    std::string reason_;
};

// True where each of these dictionaries holds the very objects that its tuple has, in that order:
// what is asked before a replay, in a hundredth of a microsecond for each of them.
bool hold_same(nb::list tables, nb::list values) {
    if (nb::len(tables) != nb::len(values)) return false;
    for (std::size_t i = 0; i < nb::len(tables); i++) {
        PyObject* table = PyList_GET_ITEM(tables.ptr(), static_cast<Py_ssize_t>(i));
        PyObject* before = PyList_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i));
        if (!PyDict_Check(table) || !PyTuple_Check(before))
            throw nb::type_error("hold_same takes dictionaries and tuples");
        if (PyDict_Size(table) != PyTuple_GET_SIZE(before)) return false;
        PyObject *name, *now;
        Py_ssize_t position = 0;
        for (Py_ssize_t at = 0; PyDict_Next(table, &position, &name, &now); at++)
            if (PyTuple_GET_ITEM(before, at) != now) return false;
    }
    return true;
}

const Registrar registrar([](nb::module_& m) {
    if (_import_array() < 0) throw nb::python_error();
    nb::class_<Capture>(m, "Capture")
        .def(nb::init<nb::tuple, long, bool>(), "batch"_a, "most_bytes"_a, "frozen"_a = false)
        .def("begin", &Capture::begin)
        .def("end", &Capture::end)
        .def("invalidate", &Capture::invalidate, "reason"_a)
        .def_prop_ro("reason", &Capture::reason)
        .def_prop_ro("bytes", &Capture::bytes)
        .def("__len__", &Capture::size)
        .def("replay", &Capture::replay, "batch"_a);
    m.def("hold_same", &hold_same, "tables"_a, "values"_a);
    m.def("invalidate_capture", &invalidate_capture, "reason"_a);
});

}  // namespace

void capture_call(PyObject* kernel, PyObject* const* arguments, Py_ssize_t count) {
    if (active != nullptr) active->append(kernel, arguments, count);
}

void invalidate_capture(const char* reason) {
    if (active != nullptr) active->invalidate(reason);
}

}  // namespace handgrad
