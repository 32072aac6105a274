// Output arrays of NumPy in memory that is used again (memory.h). Small arrays are left to NumPy,
// whose own cache is as good.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include "core/binding/binding.h"
#include "core/runtime/memory.h"

namespace handgrad {
namespace {

constexpr long kSmall = 32 << 10;

// The capacity of the block goes with it as the capsule's context.
void release(PyObject* capsule) {
    free_block({PyCapsule_GetPointer(capsule, nullptr),
                reinterpret_cast<std::size_t>(PyCapsule_GetContext(capsule))});
}

nb::object owner_of(MemoryBlock block) {
    PyObject* capsule = PyCapsule_New(block.data, nullptr, nullptr);
    if (capsule == nullptr) {
        free_block(block);
        throw nb::python_error();
    }
    PyCapsule_SetContext(capsule, reinterpret_cast<void*>(block.capacity));
    PyCapsule_SetDestructor(capsule, release);
    return nb::steal(capsule);
}

// Takes over the reference to `type`.
nb::object new_array(int axes, const npy_intp* shape, PyArray_Descr* type) {
    const nb::object owned = nb::steal(reinterpret_cast<PyObject*>(type));
    long count = 1, bytes;
    bool countable = true;
    for (int i = 0; i < axes; i++)
        countable = countable && !__builtin_mul_overflow(count, shape[i], &count);
    countable = countable && !__builtin_mul_overflow(count, PyDataType_ELSIZE(type), &bytes);
    // NumPy has the words for a size that is none.
    if (!countable || bytes < kSmall || PyDataType_REFCHK(type)) {
        // Every one of them has the GIL.
        static long small = 0;
        if (++small % 64 == 0) note_small_arrays(64);
        Py_INCREF(type);
        PyObject* array = PyArray_Empty(axes, shape, type, 0);
        if (array == nullptr) throw nb::python_error();
        return nb::steal(array);
    }
    const MemoryBlock block = allocate_block(bytes, 1);
    nb::object owner = owner_of(block);
    Py_INCREF(type);
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, type, axes, shape, nullptr, block.data,
                                           NPY_ARRAY_CARRAY, nullptr);
    if (array == nullptr) throw nb::python_error();
    nb::object made = nb::steal(array);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.release().ptr()) < 0)
        throw nb::python_error();
    return made;
}

nb::object empty(nb::handle shape, nb::handle dtype) {
    struct Lengths : PyArray_Dims {
        ~Lengths() { PyDimMem_FREE(ptr); }
    } lengths{};
    PyArray_Descr* type = nullptr;
    if (!PyArray_IntpConverter(shape.ptr(), &lengths) ||
        !PyArray_DescrConverter(dtype.ptr(), &type))
        throw nb::python_error();
    return new_array(lengths.len, lengths.ptr, type);
}

nb::object empty_like(nb::handle array) {
    auto* like = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (!PyArray_Check(like)) throw nb::type_error("empty_like takes an array of NumPy");
    PyArray_Descr* type = PyArray_DESCR(like);
    Py_INCREF(type);
    return new_array(PyArray_NDIM(like), PyArray_DIMS(like), type);
}

const Registrar registrar([](nb::module_& m) {
    if (_import_array() < 0) throw nb::python_error();
    m.def("empty", &empty, "shape"_a, "dtype"_a,
          "An uninitialised C-contiguous array; large ones come from memory used before.");
    m.def("empty_like", &empty_like, "array"_a, "The same, of the shape and type of another.");
    m.def("release_memory", &release_blocks, "Give memory kept for later arrays back.");
});

}  // namespace
}  // namespace handgrad
