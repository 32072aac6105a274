// The cells of models/decoder_cells.py: from one state of a decoder to the next.
//
// a holds the inputs' part of a step, W_ih x + b_ih, and b the state's, W_hh s_{j−1} + b_hh.
// forward leaves in a what backward needs beside b and s: of a cell of one gate nothing, and a may
// stand where s will. backward writes the gradients of a and b, and in `ds`, which comes as the
// gradient of s_j, what of it goes to s_{j−1} without W_hh.
#pragma once

#include "core/elementwise/activation.h"
#include "core/elementwise/elementwise.h"

namespace handgrad {

// s_j = f(a + b), with f the logistic function or tanh.
template <class T, class F>
struct PlainCell {
    static constexpr long kGates = 1;

    static void forward(long hidden, T* a, const T* b, const T*, T* s) {
        transform<T>(0, hidden,
                     [=](auto lanes) { lanes.store(s, F{}.value(lanes.load(a) + lanes.load(b))); });
    }

    static void backward(long hidden, const T*, const T*, const T*, const T* s, T* ds, T* da,
                         T* db) {
        transform<T>(0, hidden, [=](auto lanes) {
            const Vec<T> g = F{}.gradient(lanes.load(ds), lanes.load(s));
            lanes.store(da, g);
            lanes.store(db, g);
            lanes.store(ds, Vec<T>{});
        });
    }
};

// r, z = σ(a + b),  n = tanh(a_n + r b_n),  s_j = (1 − z) n + z s_{j−1}; a becomes [r; z; n].
template <class T>
struct GruCell {
    static constexpr long kGates = 3;

    static void forward(long hidden, T* a, const T* b, const T* before, T* s) {
        T *a_z = a + hidden, *a_n = a + 2 * hidden;
        const T *b_z = b + hidden, *b_n = b + 2 * hidden;
        transform<T>(0, hidden, [=](auto lanes) {
            const Vec<T> r = sigmoid(Vec<T>(lanes.load(a) + lanes.load(b)));
            const Vec<T> z = sigmoid(Vec<T>(lanes.load(a_z) + lanes.load(b_z)));
            const Vec<T> n = tanh(Vec<T>(lanes.load(a_n) + r * lanes.load(b_n)));
            lanes.store(a, r);
            lanes.store(a_z, z);
            lanes.store(a_n, n);
            lanes.store(s, (T(1) - z) * n + z * lanes.load(before));
        });
    }

    static void backward(long hidden, const T* a, const T* b, const T* before, const T*, T* ds,
                         T* da, T* db) {
        transform<T>(0, hidden, [=](auto lanes) {
            const Vec<T> g = lanes.load(ds), r = lanes.load(a), z = lanes.load(a + hidden),
                         n = lanes.load(a + 2 * hidden), u = lanes.load(b + 2 * hidden);
            const Vec<T> da_n = g * (T(1) - z) * (T(1) - n * n);
            const Vec<T> da_z = g * (lanes.load(before) - n) * z * (T(1) - z);
            const Vec<T> da_r = da_n * u * r * (T(1) - r);
            lanes.store(da, da_r);
            lanes.store(da + hidden, da_z);
            lanes.store(da + 2 * hidden, da_n);
            lanes.store(db, da_r);
            lanes.store(db + hidden, da_z);
            lanes.store(db + 2 * hidden, da_n * r);
            lanes.store(ds, g * z);
        });
    }
};

// The codes of cells, as models/decoder_cells.py numbers them.
constexpr int kGru = 2, kCells = 3;

// A cell as the steps call it, which are compiled once for all cells.
template <class T>
struct DecoderCell {
    void (*forward)(long hidden, T* a, const T* b, const T* before, T* s);
    void (*backward)(long hidden, const T* a, const T* b, const T* before, const T* s, T* ds, T* da,
                     T* db);
};

// The cell of this code, its index in CELLS of models/decoder_cells.py.
template <class T>
DecoderCell<T> cell_of(int code) {
    const auto functions = []<class Cell>(Cell) {
        return DecoderCell<T>{&Cell::forward, &Cell::backward};
    };
    if (code == 0) return functions(PlainCell<T, Sigmoid<T>>{});
    if (code == 1) return functions(PlainCell<T, Tanh<T>>{});
    return functions(GruCell<T>{});
}

}  // namespace handgrad
