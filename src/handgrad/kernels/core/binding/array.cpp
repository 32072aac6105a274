#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "core/binding/array.h"

#include <numpy/arrayobject.h>

#include <cmath>
#include <vector>

#include "core/binding/binding.h"

namespace handgrad {

namespace {

PyArrayObject* array_of(PyObject* object, char kind, int item_size) {
    if (!PyArray_Check(object)) return nullptr;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const bool fits = PyArray_DESCR(array)->kind == kind && PyArray_ITEMSIZE(array) == item_size;
    return fits ? array : nullptr;
}

bool is_writeable(PyArrayObject* array) { return PyArray_ISWRITEABLE(array) || replaying; }

void fill_view(PyArrayObject* array, ArrayView& view) {
    view.data = PyArray_DATA(array);
    view.shape = PyArray_DIMS(array);
    view.strides = PyArray_STRIDES(array);
    view.ndim = PyArray_NDIM(array);
    view.size = static_cast<long>(PyArray_SIZE(array));
}

}  // namespace

bool view_array(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view) {
    PyArrayObject* array = array_of(object, kind, item_size);
    if (array == nullptr) return false;
    if (!PyArray_ISCARRAY_RO(array) || (writeable && !is_writeable(array))) return false;
    fill_view(array, view);
    return true;
}

bool view_strided(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view) {
    PyArrayObject* array = array_of(object, kind, item_size);
    if (array == nullptr || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
    if (writeable && !is_writeable(array)) return false;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (PyArray_STRIDE(array, i) % item_size != 0) return false;
    fill_view(array, view);
    return true;
}

namespace {

// The ways an array may lie in memory, as kernels/spec.py numbers them: C-contiguous; with its last
// axis of more than one value contiguous, the others at any strides; or at any strides.
enum class Layout { kContiguous, kRows, kStrided };

// True where a kernel that takes this layout can read an array in place.
bool is_readable(PyArrayObject* array, Layout layout) {
    if (PyArray_ISCARRAY_RO(array)) return true;
    if (layout == Layout::kContiguous) return false;
    const Py_ssize_t item_size = PyArray_ITEMSIZE(array);
    if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
    int last = PyArray_NDIM(array) - 1;
    for (int i = 0; i <= last; i++)
        if (PyArray_STRIDE(array, i) % item_size != 0) return false;
    if (layout == Layout::kStrided) return true;
    while (last >= 0 && PyArray_DIM(array, last) <= 1) last--;
    return last < 0 || PyArray_STRIDE(array, last) == item_size;
}

// The kinds of a parameter of an op, as handgrad/dispatch/signature.py numbers them: arrays of
// floats, of integers or of booleans, and settings.
enum Kind : unsigned {
    kFloats = 1,
    kIntegers = 2,
    kBooleans = 4,
    kInteger = 8,
    kNumber = 16,
    kFlag = 32,
    kText = 64,
    kNone = 128,
    kSeveral = 256,
    kGenerator = 512,
};

// A Python int that int64 holds.
bool is_small_integer(PyObject* value) {
    if (!PyLong_CheckExact(value)) return false;
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0;
}

bool are_small_integers(PyObject* value) {
    if (!PyTuple_CheckExact(value)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
        if (!is_small_integer(PyTuple_GET_ITEM(value, i))) return false;
    return true;
}

// An op's parameters. Every call of an op asks first whether its arguments are plain: readable
// arrays, those of floats all of one type, and settings of Python's own types, each where it
// belongs and none missing. What is not plain is looked at in Python, which has the words for it.
class Signature {
  public:
    Signature(nb::tuple names, std::vector<unsigned> kinds, std::size_t positional,
              std::uint32_t required, nb::object generator)
        : names_(std::move(names)),
          kinds_(std::move(kinds)),
          positional_(positional),
          required_(required),
          generator_(std::move(generator)) {}

    bool fits(nb::tuple arguments, nb::dict named, int layout) const {
        std::uint32_t seen = 0;
        int floats = NPY_NOTYPE;
        const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(arguments.ptr()));
        if (count > positional_) return false;
        for (std::size_t i = 0; i < count; i++) {
            PyObject* value = PyTuple_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
            if (!takes(kinds_[i], value, Layout(layout), floats)) return false;
            seen |= 1u << i;
        }
        PyObject *name, *value;
        Py_ssize_t position = 0;
        while (PyDict_Next(named.ptr(), &position, &name, &value)) {
            const std::size_t i = index_of(name);
            if (i == kinds_.size() || (seen & 1u << i) != 0) return false;
            if (!takes(kinds_[i], value, Layout(layout), floats)) return false;
            seen |= 1u << i;
        }
        return floats != NPY_NOTYPE && (seen & required_) == required_;
    }

  private:
    // Names in code are interned, so that the object itself tells them; any other is not found.
    std::size_t index_of(PyObject* name) const {
        for (std::size_t i = 0; i < kinds_.size(); i++)
            if (PyTuple_GET_ITEM(names_.ptr(), static_cast<Py_ssize_t>(i)) == name) return i;
        return kinds_.size();
    }

    bool takes(unsigned kinds, PyObject* value, Layout layout, int& floats) const {
        if (PyArray_CheckExact(value)) {
            auto* array = reinterpret_cast<PyArrayObject*>(value);
            if (!is_readable(array, layout)) return false;
            const int type = PyArray_TYPE(array);
            if (type == NPY_FLOAT || type == NPY_DOUBLE) {
                if (floats == NPY_NOTYPE) floats = type;
                return (kinds & kFloats) != 0 && floats == type;
            }
            if (type == NPY_BOOL) return (kinds & kBooleans) != 0;
            return (kinds & kIntegers) != 0 && PyTypeNum_ISSIGNED(type) &&
                   PyArray_ITEMSIZE(array) == 8;
        }
        return (value == Py_None && (kinds & kNone) != 0) ||
               (PyFloat_CheckExact(value) && (kinds & kNumber) != 0 &&
                std::isfinite(PyFloat_AS_DOUBLE(value))) ||
               (PyBool_Check(value) && (kinds & kFlag) != 0) ||
               (PyUnicode_CheckExact(value) && (kinds & kText) != 0) ||
               ((kinds & kInteger) != 0 && is_small_integer(value)) ||
               ((kinds & kSeveral) != 0 && are_small_integers(value)) ||
               ((kinds & kGenerator) != 0 &&
                reinterpret_cast<PyObject*>(Py_TYPE(value)) == generator_.ptr());
    }

    nb::tuple names_;
    std::vector<unsigned> kinds_;
    std::size_t positional_;
    std::uint32_t required_;
    nb::object generator_;
};

// The memory from the first to the last byte of an array; nothing for one without values.
struct Extent {
    const char* begin = nullptr;
    const char* end = nullptr;

    explicit Extent(PyArrayObject* array) {
        if (PyArray_SIZE(array) == 0) return;
        begin = end = PyArray_BYTES(array);
        for (int i = 0; i < PyArray_NDIM(array); i++) {
            const Py_ssize_t reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
            (reach < 0 ? begin : end) += reach;
        }
        end += PyArray_ITEMSIZE(array);
    }
    bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// use(array) for every array in nested tuples and lists, until it returns true.
template <class Use>
bool any_array(PyObject* nested, const Use& use) {
    if (PyArray_Check(nested)) return use(reinterpret_cast<PyArrayObject*>(nested));
    if (!PyTuple_Check(nested) && !PyList_Check(nested)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(nested); i++)
        if (any_array(PySequence_Fast_GET_ITEM(nested, i), use)) return true;
    return false;
}

// True if arrays in `out` may share memory with each other or with one in `others`. With `same`,
// one of `others` that is the very same memory does not count.
bool overlaps(nb::handle out, nb::handle others, bool same) {
    std::vector<Extent> seen;
    return any_array(out.ptr(), [&](PyArrayObject* array) {
        const Extent extent(array);
        for (const Extent& other : seen)
            if (extent.meets(other)) return true;
        seen.push_back(extent);
        return any_array(others.ptr(), [&](PyArrayObject* other) {
            const Extent theirs(other);
            if (same && theirs.begin == extent.begin && theirs.end == extent.end) return false;
            return extent.meets(theirs);
        });
    });
}

// A number that tells whether what an op kept is still what it kept: the same objects, and of
// arrays also where they lie and with which shape. Values are not looked at.
class Seal {
  public:
    void add(PyObject* value) {
        if (PyTuple_Check(value)) {
            add(static_cast<std::uint64_t>(PyTuple_GET_SIZE(value)));
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
                add(PyTuple_GET_ITEM(value, i));
            return;
        }
        add(reinterpret_cast<std::uintptr_t>(value));
        if (!PyArray_Check(value)) return;
        auto* array = reinterpret_cast<PyArrayObject*>(value);
        add(reinterpret_cast<std::uintptr_t>(PyArray_DATA(array)));
        add(static_cast<std::uint64_t>(PyArray_TYPE(array)));
        for (int i = 0; i < PyArray_NDIM(array); i++) {
            add(static_cast<std::uint64_t>(PyArray_DIM(array, i)));
            add(static_cast<std::uint64_t>(PyArray_STRIDE(array, i)));
        }
    }
    std::uint64_t value() const { return state_; }

  private:
    void add(std::uint64_t value) {
        state_ = (state_ ^ value) * 0xff51afd7ed558ccdull;
        state_ ^= state_ >> 32;
    }
    std::uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

std::uint64_t seal_of(nb::handle kept) {
    Seal seal;
    seal.add(kept.ptr());
    return seal.value();
}

// The seal of `kept`; outputs that lie where something kept lies can no longer be written to.
std::uint64_t seal(nb::handle outputs, nb::handle kept) {
    any_array(outputs.ptr(), [&](PyArrayObject* output) {
        const Extent extent(output);
        if (any_array(kept.ptr(),
                      [&](PyArrayObject* other) { return extent.meets(Extent(other)); }))
            PyArray_CLEARFLAGS(output, NPY_ARRAY_WRITEABLE);
        return false;
    });
    return seal_of(kept);
}

// True if a readable array, or nested tuples of such, are as `like` says: (shape, dtype), or a list
// of these for nested outputs, of which all but the first may be None.
bool is_like(PyObject* given, PyObject* like, Layout layout, bool optional) {
    if (PyTuple_CheckExact(like)) {
        if (given == Py_None) return optional;
        if (!PyArray_CheckExact(given)) return false;
        auto* array = reinterpret_cast<PyArrayObject*>(given);
        PyObject* shape = PyTuple_GET_ITEM(like, 0);
        auto* type = reinterpret_cast<PyArray_Descr*>(PyTuple_GET_ITEM(like, 1));
        if (PyArray_TYPE(array) != type->type_num || !is_readable(array, layout)) return false;
        if (PyArray_NDIM(array) != PyTuple_GET_SIZE(shape)) return false;
        for (int i = 0; i < PyArray_NDIM(array); i++)
            if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != PyArray_DIM(array, i)) return false;
        return true;
    }
    if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != PyList_GET_SIZE(like))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++)
        if (!is_like(PyTuple_GET_ITEM(given, i), PyList_GET_ITEM(like, i), layout,
                     optional || i > 0))
            return false;
    return true;
}

const Registrar registrar([](nb::module_& m) {
    if (_import_array() < 0) throw nb::python_error();
    nb::class_<Signature>(m, "Signature")
        .def(nb::init<nb::tuple, std::vector<unsigned>, std::size_t, std::uint32_t, nb::object>(),
             "names"_a, "kinds"_a, "positional"_a, "required"_a, "generator"_a)
        .def("fits", &Signature::fits, "arguments"_a, "named"_a, "layout"_a);
    m.def(
        "is_readable",
        [](nb::handle array, int layout) {
            if (!PyArray_Check(array.ptr())) throw nb::type_error("an array of NumPy is wanted");
            return is_readable(reinterpret_cast<PyArrayObject*>(array.ptr()), Layout(layout));
        },
        "array"_a, "layout"_a);
    m.def("overlaps", &overlaps, "out"_a, "others"_a, "same"_a);
    m.def("seal", &seal, "outputs"_a, "kept"_a);
    m.def("seal_of", &seal_of, "kept"_a);
    m.def(
        "is_like",
        [](nb::handle given, nb::handle like, int layout) {
            return is_like(given.ptr(), like.ptr(), Layout(layout), false);
        },
        "given"_a.none(), "like"_a, "layout"_a);
});

}  // namespace
}  // namespace handgrad
