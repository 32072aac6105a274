// Output arrays from memory that is used again.
//
// A training step frees what the step before allocated, in the same sizes. Blocks that NumPy gives
// back are therefore kept, by size, for the next array: steady-state training touches no fresh
// pages. Small arrays are left to NumPy, whose own cache is as good.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "core/memory.h"

#include <numpy/arrayobject.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "core/binding.h"

namespace handgrad {
namespace {

constexpr std::size_t kSmall = 32 << 10;
constexpr std::size_t kHugePage = 2 << 20;
// A block goes back to the system where blocks in use and blocks kept would come to this much more
// than were ever in use at once: a new size seldom finds a block that fits it.
constexpr std::size_t kSpare = std::size_t(512) << 20;

class Store {
  public:
    void* take(std::size_t size) {
        std::lock_guard lock(mutex_);
        if (kExactBlocks) {
            void* block = exact_block(size);
            sizes_[block] = size;
            return block;
        }
        const std::size_t alignment = size >= kHugePage ? kHugePage : 64;
        const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
        // A block up to an eighth too large still serves.
        const auto found = free_.lower_bound(rounded);
        if (found != free_.end() && found->first <= rounded + rounded / 8) {
            void* block = found->second.back();
            kept_ -= found->first;
            note_use(block, found->first);
            found->second.pop_back();
            if (found->second.empty()) free_.erase(found);
            return block;
        }
        void* block = std::aligned_alloc(alignment, rounded);
        if (block == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        if (size >= kHugePage) madvise(block, rounded, MADV_HUGEPAGE);
#endif
        note_use(block, rounded);
        return block;
    }

    void give_back(void* block) {
        std::lock_guard lock(mutex_);
        const auto entry = sizes_.find(block);
        const std::size_t size = entry->second;
        sizes_.erase(entry);
        if (kExactBlocks) return std::free(block);
        used_ -= size;
        if (used_ + kept_ + size > most_used_ + kSpare) return std::free(block);
        kept_ += size;
        free_[size].push_back(block);
    }

  private:
    void note_use(void* block, std::size_t size) {
        sizes_[block] = size;
        used_ += size;
        most_used_ = std::max(most_used_, used_);
    }

    std::mutex mutex_;
    std::map<std::size_t, std::vector<void*>> free_;
    std::map<void*, std::size_t> sizes_;
    std::size_t kept_ = 0, used_ = 0, most_used_ = 0;
};

// Never destroyed: arrays may outlive every static object of the module.
Store& blocks() {
    static Store* store = new Store;
    return *store;
}

}  // namespace

void* take_block(std::size_t bytes) { return blocks().take(bytes); }
void give_back_block(void* block) { blocks().give_back(block); }

namespace {

void release(PyObject* capsule) { give_back_block(PyCapsule_GetPointer(capsule, nullptr)); }

// Takes over the reference to `type`.
nb::object new_array(int axes, const npy_intp* shape, PyArray_Descr* type) {
    std::size_t bytes = static_cast<std::size_t>(PyDataType_ELSIZE(type));
    for (int i = 0; i < axes; i++) bytes *= static_cast<std::size_t>(shape[i]);
    PyObject* array;
    if (bytes < kSmall) {
        array = PyArray_Empty(axes, shape, type, 0);
    } else {
        void* data = take_block(bytes);
        array = PyArray_NewFromDescr(&PyArray_Type, type, axes, shape, nullptr, data,
                                     NPY_ARRAY_CARRAY, nullptr);
        PyObject* owner = PyCapsule_New(data, nullptr, release);
        if (array != nullptr) PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner);
    }
    if (array == nullptr) throw nb::python_error();
    return nb::steal(array);
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
});

}  // namespace
}  // namespace handgrad
