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

const Registrar registrar([](nb::module_&) {
    if (_import_array() < 0) throw nb::python_error();
});

}  // namespace
}  // namespace handgrad
