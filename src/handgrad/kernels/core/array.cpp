#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "core/array.h"

#include <numpy/arrayobject.h>

#include "core/binding.h"

namespace handgrad {

bool view_array(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view) {
    if (!PyArray_Check(object)) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    if (PyArray_DESCR(array)->kind != kind || PyArray_ITEMSIZE(array) != item_size) return false;
    if (writeable ? !PyArray_ISCARRAY(array) : !PyArray_ISCARRAY_RO(array)) return false;
    view.data = PyArray_DATA(array);
    view.shape = PyArray_DIMS(array);
    view.ndim = PyArray_NDIM(array);
    view.size = static_cast<long>(PyArray_SIZE(array));
    return true;
}

namespace {

const Registrar registrar([](nb::module_&) {
    if (_import_array() < 0) throw nb::python_error();
});

}  // namespace
}  // namespace handgrad
