#include "core/binding/kernel.h"

#include <structmember.h>

#include <climits>
#include <cstddef>
#include <deque>
#include <exception>
#include <new>
#include <stdexcept>

#include "core/runtime/capture.h"
#include "core/runtime/settings.h"

namespace handgrad {

HANDGRAD_THREAD_LOCAL const char* kernel_in_call = "";

namespace {

// Kernels point into it, so that none may move.
std::deque<Native>& natives() {
    static std::deque<Native> all;
    return all;
}

// A module has one of these under every kernel's name.
struct Kernel {
    PyObject_HEAD vectorcallfunc call;
    const Native* native;
};

// Arguments as they are read, for a function with one parameter of sizes at most.
struct Arguments {
    std::array<Argument, kMostParameters> each;
    std::array<long, kMostSizes> sizes;
};

bool read_integer(PyObject* object, long least, long most, long& value) {
    if (PyFloat_Check(object)) return false;
    value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
    }
    return value >= least && value <= most;
}

bool read_sizes(PyObject* object, int count, std::array<long, kMostSizes>& sizes) {
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != count) return false;
    for (int i = 0; i < count; i++)
        if (!read_integer(PyTuple_GET_ITEM(object, i), LONG_MIN, LONG_MAX,
                          sizes[static_cast<std::size_t>(i)]))
            return false;
    return true;
}

bool read(const Parameter& parameter, PyObject* object, Argument& argument,
          std::array<long, kMostSizes>& sizes) {
    argument.given = !parameter.optional || object != Py_None;
    if (!argument.given) return true;
    switch (parameter.kind) {
        case ParameterKind::kArray:
            return view_array(object, parameter.type, parameter.item_size, parameter.writeable,
                              argument.view);
        case ParameterKind::kStrided:
            return view_strided(object, parameter.type, parameter.item_size, parameter.writeable,
                                argument.view);
        case ParameterKind::kInteger: {
            const bool narrow = parameter.item_size == sizeof(int);
            return read_integer(object, narrow ? INT_MIN : LONG_MIN, narrow ? INT_MAX : LONG_MAX,
                                argument.integer);
        }
        case ParameterKind::kNumber:
            argument.number = PyFloat_AsDouble(object);
            if (argument.number != -1 || PyErr_Occurred() == nullptr) return true;
            PyErr_Clear();
            return false;
        case ParameterKind::kFlag:
            argument.integer = object == Py_True;
            return PyBool_Check(object);
        case ParameterKind::kSizes:
            argument.sizes = sizes.data();
            return read_sizes(object, parameter.count, sizes);
    }
    return false;
}

// The place of the first argument that does not fit, or the number of all.
int read_all(const Overload& overload, PyObject* const* objects, Arguments& arguments) {
    int i = 0;
    while (i < overload.count && read(overload.parameters[i], objects[i],
                                      arguments.each[static_cast<std::size_t>(i)], arguments.sizes))
        i++;
    return i;
}

std::string wanted(const Parameter& parameter) {
    switch (parameter.kind) {
        case ParameterKind::kArray:
        case ParameterKind::kStrided:
            return std::string(parameter.writeable ? "a writeable" : "an") + " array of " +
                   parameter.type + std::to_string(parameter.item_size) +
                   (parameter.kind == ParameterKind::kArray ? ", C-contiguous" : "") +
                   (parameter.optional ? ", or None" : "");
        case ParameterKind::kInteger:
            return "an integer";
        case ParameterKind::kNumber:
            return "a number";
        case ParameterKind::kFlag:
            return "True or False";
        case ParameterKind::kSizes:
            return "a tuple of " + std::to_string(parameter.count) + " integers";
    }
    return "";
}

[[noreturn]] void refuse(const Native& native, PyObject* const* objects, int at) {
    std::string allowed;
    for (int i = 0; i < native.count; i++) {
        const std::string one =
            wanted(native.overloads[static_cast<std::size_t>(i)].parameters[at]);
        if (allowed.find(one) == std::string::npos) allowed += (i > 0 ? "; or " : "") + one;
    }
    throw nb::type_error((native.name + ": argument " + std::to_string(at + 1) + " is of type " +
                          Py_TYPE(objects[at])->tp_name + " and does not fit; allowed: " + allowed)
                             .c_str());
}

PyObject* python_type_of(const nb::builtin_exception& error) {
    switch (error.type()) {
        case nb::exception_type::index_error:
            return PyExc_IndexError;
        case nb::exception_type::value_error:
            return PyExc_ValueError;
        case nb::exception_type::type_error:
            return PyExc_TypeError;
        default:
            return PyExc_RuntimeError;
    }
}

PyObject* call_kernel(PyObject* self, PyObject* const* arguments, std::size_t count,
                      PyObject* names) {
    try {
        if (names != nullptr && PyTuple_GET_SIZE(names) != 0)
            throw nb::type_error("a kernel takes its arguments by position");
        const CallScope scope(current_settings());
        PyObject* result = make_call(self, arguments, PyVectorcall_NARGS(count));
        if (result != Py_None)
            invalidate_capture("a kernel returned a value");
        else
            capture_call(self, arguments, PyVectorcall_NARGS(count));
        return result;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const nb::builtin_exception& error) {
        PyErr_SetString(python_type_of(error), error.what());
    } catch (const std::bad_alloc& error) {
        PyErr_SetString(PyExc_MemoryError, error.what());
    } catch (const std::invalid_argument& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

void destroy_kernel(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyTypeObject* kernel_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(destroy_kernel)},
                                  {Py_tp_members, members},
                                  {0, nullptr}};
    static PyType_Spec spec{
        "handgrad.kernels.Kernel", sizeof(Kernel), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return type;
}

nb::object kernel_of(const Native& native) {
    PyTypeObject* type = kernel_type();
    if (type == nullptr) throw nb::python_error();
    auto* made = reinterpret_cast<Kernel*>(type->tp_alloc(type, 0));
    if (made == nullptr) throw nb::python_error();
    made->call = call_kernel;
    made->native = &native;
    return nb::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace

KernelRegistrar::KernelRegistrar(Native native) { natives().push_back(std::move(native)); }

void bind_kernels(nb::module_& m) {
    for (const Native& native : natives()) m.attr(native.name.c_str()) = kernel_of(native);
}

PyObject* make_call(PyObject* kernel, PyObject* const* objects, Py_ssize_t count) {
    const Native& native = *reinterpret_cast<Kernel*>(kernel)->native;
    if (count != native.overloads[0].count)
        throw nb::type_error(
            (native.name + ": " + std::to_string(count) +
             " arguments are given; allowed: " + std::to_string(native.overloads[0].count))
                .c_str());
    kernel_in_call = native.name.c_str();
    Arguments arguments;
    int furthest = 0;
    for (int i = 0; i < native.count; i++) {
        const Overload& overload = native.overloads[static_cast<std::size_t>(i)];
        const int read = read_all(overload, objects, arguments);
        if (read == overload.count) {
            const double result = overload.make(overload.function, arguments.each.data());
            return overload.returns ? nb::float_(result).release().ptr() : Py_NewRef(Py_None);
        }
        furthest = std::max(furthest, read);
    }
    refuse(native, objects, furthest);
}

}  // namespace handgrad
