// All steps forward.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/recurrence/layer.h"
#include "core/recurrence/step_product.h"

namespace handgrad::recurrence {

// y and the final h. A cell says which slabs of W_ih and W_hh its sums are made of (−1 for none),
// and step(lanes, row, sums) keeps what it needs and gives the new h.
template <class Element, class T, class Cell>
void run_forward_in(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, T* h_n) {
    constexpr int S = Cell::kSums;
    constexpr bool kRecurrent = Cell::kFromH[0] >= 0;
    const long H = in.hidden, P = in.size, D = in.features;
    constexpr long kSlabs = Cell::kSlabs;
    const PackedWeights<Element> from_x(in.weight_ih, kSlabs, H * D, H, D, D, 1);
    std::optional<PackedWeights<Element>> from_h, projection;
    if constexpr (kRecurrent) from_h.emplace(in.weight_hh, kSlabs, H * P, H, P, P, 1);
    if (in.weight_hr != nullptr) projection.emplace(in.weight_hr, 1, 0, P, H, H, 1);
    const Workspace<T> bias(S * padded<T>(H));
    for (int s = 0; s < S; s++)
        for (long u = 0; u < H; u++) {
            T value = 0;
            if (in.bias_ih != nullptr && Cell::kFromX[s] >= 0)
                value += in.bias_ih[Cell::kFromX[s] * H + u];
            if (in.bias_hh != nullptr && Cell::kFromH[s] >= 0)
                value += in.bias_hh[Cell::kFromH[s] * H + u];
            bias.data()[s * padded<T>(H) + u] = value;
        }

    for_partitions(sequences, S * H * (D + P), [&](SequencePartition partition) {
        const Registers<Element> registers;
        const long most = partition.count(sequences.batch());
        const StepMatrix<Element> x_t(most, D), m_t(projection ? most : 0, H);
        const StepMatrix<Element> first(most, P), second(most, P);
        const StepMatrix<Element>*h = &first, *h_new = &second;
        Tiles<Element, S> tiles(most);
        Tiles<Element, 1> projected(projection ? most : 0);
        std::vector<StepRow> rows(static_cast<std::size_t>(most));
        for (long i = 0; i < most; i++) {
            const T* initial = in.h0 == nullptr
                                   ? nullptr
                                   : in.h0 + sequences.sequence(partition.sorted_index(i)) * P;
            first.set(i, initial);
            second.set(i, initial);
        }
        for (long s = 0; s < sequences.steps(); s++) {
            const long t = sequences.time(s), active = partition.count(sequences.active(t));
            if (active == 0) continue;
            for (long i = 0; i < active; i++) {
                const StepRow row = sequences.step(partition.sorted_index(i), t);
                rows[static_cast<std::size_t>(i)] = row;
                x_t.set(i, in.x + row.position * D);
            }
            tiles.set_rows(active);
            for (long panel = 0; panel < from_x.panels(); panel++) {
                breathe();
                for (int k = 0; k < S; k++) {
                    if (Cell::kFromX[k] >= 0)
                        tiles.multiply(k, x_t, from_x, panel, Cell::kFromX[k], false);
                    if (kRecurrent && Cell::kFromH[k] >= 0)
                        tiles.multiply(k, *h, *from_h, panel, Cell::kFromH[k],
                                       Cell::kFromX[k] >= 0);
                }
                tiles.epilogue(from_x, panel, [&](long i, auto lanes, auto& sums) {
                    const StepRow& row = rows[static_cast<std::size_t>(i)];
                    for (int k = 0; k < S; k++)
                        sums[k] += lanes.load(bias.data() + k * padded<T>(H));
                    const Vec<T> value = cell.step(lanes, row, sums);
                    if (projection) {
                        m_t.store(i, lanes, value);
                    } else {
                        h_new->store(i, lanes, value);
                        lanes.store(in.y + row.position * P, value);
                    }
                });
            }
            if (projection) {
                projected.set_rows(active);
                for (long panel = 0; panel < projection->panels(); panel++) {
                    breathe();
                    projected.multiply(0, m_t, *projection, panel, 0, false);
                    projected.epilogue(*projection, panel, [&](long i, auto lanes, auto& sums) {
                        h_new->store(i, lanes, sums[0]);
                        lanes.store(in.y + rows[static_cast<std::size_t>(i)].position * P, sums[0]);
                    });
                }
            }
            std::swap(h, h_new);
        }
        for (long i = 0; i < most; i++) {
            const long sorted_index = partition.sorted_index(i), t = sequences.last(sorted_index);
            write_final<T>(h_n, t < 0 ? nullptr : in.y + sequences.position(sorted_index, t) * P,
                           in.h0, sequences.sequence(sorted_index), P);
            clear_padding(in.y, sequences, sorted_index, P);
        }
    });
}

// The same at the precision in force.
template <class T, class Cell>
void run_forward(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, T* h_n) {
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() { run_forward_in<Element>(in, sequences, cell, h_n); });
}

}  // namespace handgrad::recurrence
