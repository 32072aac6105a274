// Capture and replay: the calls of kernels that a piece of Python makes are kept with their
// arguments, and made again without Python, as CUDA graphs do on a GPU.
//
// Every kernel is reached through a `Kernel`, a callable that makes the settings of the caller's
// context those of the call, passes its arguments on and, while a capture is active on this thread,
// appends them to it. A replayed call reads and writes the same arrays each time, so a new batch is
// copied to where the first one was. A call that returns a value has given Python something that a
// replay could not: it invalidates the capture. Passing a call on costs some 60 ns.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <structmember.h>

#include <cstring>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/binding/binding.h"
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

    void append(PyObject* function, PyObject* const* arguments, std::size_t count,
                PyObject* names) {
        if (!reason_.empty()) return;
        Call call{nb::borrow(function), {}, nb::borrow(names)};
        const std::size_t named =
            names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(names));
        for (std::size_t i = 0; i < count + named; i++) {
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
        nb::object function;
        std::vector<nb::object> arguments;
        nb::object names;

        void make() const {
            static_assert(sizeof(nb::object) == sizeof(PyObject*));
            const auto* each = reinterpret_cast<PyObject* const*>(arguments.data());
            const std::size_t named = names.is_valid() ? nb::len(names) : 0;
            PyObject* none =
                PyObject_Vectorcall(function.ptr(), each, arguments.size() - named, names.ptr());
            if (none == nullptr) throw nb::python_error();
            Py_DECREF(none);
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

// A module has one of these under every kernel's name.
struct Kernel {
    PyObject_HEAD vectorcallfunc call;
    PyObject* function;
};

PyObject* call_kernel(PyObject* self, PyObject* const* arguments, std::size_t count,
                      PyObject* names) {
    PyObject* function = reinterpret_cast<Kernel*>(self)->function;
    try {
        const CallScope scope(current_settings());
        nb::object result = nb::steal(PyObject_Vectorcall(function, arguments, count, names));
        if (active != nullptr && result.is_valid()) {
            if (result.is_none())
                active->append(function, arguments,
                               static_cast<std::size_t>(PyVectorcall_NARGS(count)), names);
            else
                active->invalidate("a kernel returned a value");
        }
        return result.release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

void destroy_kernel(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_DECREF(reinterpret_cast<Kernel*>(self)->function);
    type->tp_free(self);
    Py_DECREF(type);
}

PyTypeObject* kernel_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
        {"function", T_OBJECT_EX, offsetof(Kernel, function), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(destroy_kernel)},
                                  {Py_tp_members, members},
                                  {0, nullptr}};
    static PyType_Spec spec{"handgrad.kernels.Kernel", sizeof(Kernel), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return type;
}

nb::object kernel(nb::handle function) {
    PyTypeObject* type = kernel_type();
    auto* made = reinterpret_cast<Kernel*>(type->tp_alloc(type, 0));
    if (made == nullptr) throw nb::python_error();
    made->call = call_kernel;
    made->function = nb::borrow(function).release().ptr();
    return nb::steal(reinterpret_cast<PyObject*>(made));
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
    m.def("kernel", &kernel, "function"_a);
    m.def("invalidate_capture", [](const char* reason) {
        if (active != nullptr) active->invalidate(reason);
    });
});

}  // namespace
}  // namespace handgrad
