// NumPy arrays as arguments of native functions.
//
// nanobind's own ndarray goes through DLPack, some 0.25 µs per argument; this reads the array's
// header in a few nanoseconds, which is what a step of a small network is made of.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <type_traits>

namespace handgrad {

struct ArrayView {
    void* data;
    const Py_ssize_t* shape;
    const Py_ssize_t* strides;
    int ndim;
    long size;
};

// The axes of an array.
struct Axes {
    const Py_ssize_t* shape;
    int ndim;
};

// True while this thread replays captured calls: then outputs, which were handed out read-only
// because a cache shares them, may be written to.
inline thread_local bool replaying = false;

// True if `object` is a C-contiguous array of this kind and item size (and writeable, if asked
// for).
bool view_array(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view);

// The same for an array with any strides that are whole numbers of items.
bool view_strided(PyObject* object, char kind, int item_size, bool writeable, ArrayView& view);

// A C-contiguous array; read-only ones are taken where T is const. Nothing is ever converted.
template <class T>
class Array {
  public:
    static constexpr char kKind = std::is_floating_point_v<T>                    ? 'f'
                                  : std::is_same_v<std::remove_const_t<T>, bool> ? 'b'
                                                                                 : 'i';

    explicit Array(const ArrayView& view) : view_(&view) {}
    T* data() const { return static_cast<T*>(view_->data); }
    long size() const { return view_->size; }
    long ndim() const { return view_->ndim; }
    long shape(int axis) const { return static_cast<long>(view_->shape[axis]); }
    Axes axes() const { return {view_->shape, view_->ndim}; }

  private:
    const ArrayView* view_;
};

// An aligned array whose axes may lie any way in memory: a transposed view, a broadcast one.
// Strides count values, not bytes.
template <class T>
class Strided {
  public:
    explicit Strided(const ArrayView& view) : view_(&view) {}
    T* data() const { return static_cast<T*>(view_->data); }
    long ndim() const { return view_->ndim; }
    long shape(int axis) const { return static_cast<long>(view_->shape[axis]); }
    Axes axes() const { return {view_->shape, view_->ndim}; }
    long stride(int axis) const {
        return static_cast<long>(view_->strides[axis]) / static_cast<long>(sizeof(T));
    }

  private:
    const ArrayView* view_;
};

template <class T>
T* data_or_null(const std::optional<Array<T>>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace handgrad
