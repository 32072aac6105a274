#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "core/array.h"

#include <numpy/arrayobject.h>

#include "core/binding.h"

namespace handgrad {

namespace {

PyArrayObject* array_of(PyObject* object, char kind, int item_size) {
    if (!PyArray_Check(object)) return nullptr;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const bool fits = PyArray_DESCR(array)->kind == kind && PyArray_ITEMSIZE(array) == item_size;
    return fits ? array : nullptr;
}

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
    if (writeable ? !PyArray_ISCARRAY(array) : !PyArray_ISCARRAY_RO(array)) return false;
    fill_view(array, view);
    return true;
}

bool view_strided(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view) {
    PyArrayObject* array = array_of(object, kind, item_size);
    if (array == nullptr || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
    if (writeable && !PyArray_ISWRITEABLE(array)) return false;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (PyArray_STRIDE(array, i) % item_size != 0) return false;
    fill_view(array, view);
    return true;
}

namespace {

// Whether an aligned array has its last axis, of more than one value, in one piece; the others may
// lie any way.
bool has_whole_rows(PyArrayObject* array) {
    const Py_ssize_t item_size = PyArray_ITEMSIZE(array);
    if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
    int last = PyArray_NDIM(array) - 1;
    for (int i = 0; i <= last; i++)
        if (PyArray_STRIDE(array, i) % item_size != 0) return false;
    while (last >= 0 && PyArray_DIM(array, last) <= 1) last--;
    return last < 0 || PyArray_STRIDE(array, last) == item_size;
}

// Whether arguments of an op can go to its kernel as they are: C-contiguous arrays, those of floats
// all of one type, and beside them values of `plain` types. Where `views` are taken, their last
// axis has to be in one piece. handgrad.dispatch asks at every call.
class Fitting {
  public:
    Fitting(nb::handle plain, bool views) : plain_(plain), views_(views) {}

    bool takes(PyObject* value) {
        if (!PyArray_CheckExact(value))
            return PySet_Contains(plain_.ptr(), reinterpret_cast<PyObject*>(Py_TYPE(value))) == 1;
        auto* array = reinterpret_cast<PyArrayObject*>(value);
        if (!PyArray_ISCARRAY_RO(array) && !(views_ && has_whole_rows(array))) return false;
        const int type = PyArray_TYPE(array);
        if (type == NPY_FLOAT || type == NPY_DOUBLE) {
            if (floats_ == NPY_NOTYPE) floats_ = type;
            return floats_ == type;
        }
        return PyArray_ISINTEGER(array) || PyArray_ISBOOL(array);
    }
    bool has_floats() const { return floats_ != NPY_NOTYPE; }

  private:
    nb::handle plain_;
    bool views_;
    int floats_ = NPY_NOTYPE;
};

bool fits(nb::tuple arguments, nb::dict named, nb::handle plain, bool views) {
    Fitting fitting(plain, views);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.ptr()); i++)
        if (!fitting.takes(PyTuple_GET_ITEM(arguments.ptr(), i))) return false;
    PyObject *name, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(named.ptr(), &place, &name, &value))
        if (!fitting.takes(value)) return false;
    return fitting.has_floats();
}

const Registrar registrar([](nb::module_& m) {
    if (_import_array() < 0) throw nb::python_error();
    m.def("fits", &fits, "arguments"_a, "named"_a, "plain"_a, "views"_a);
    m.def("has_whole_rows", [](nb::handle array) {
        return has_whole_rows(reinterpret_cast<PyArrayObject*>(array.ptr()));
    });
});

}  // namespace
}  // namespace handgrad
