// All steps forward.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/recurrent/layer.h"
#include "core/recurrent/step_product.h"

namespace handgrad::recurrence {

// y and the final h.
template <class Element, class T>
void step_forward_in(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell, T* h_n) {
    const CellSlabs& slabs = cell.slabs;
    const int S = slabs.sums;
    const long H = in.hidden, P = in.size, D = in.features;
    std::array<bool, kMostSlabs> has_x;
    for (std::size_t k = 0; k < kMostSlabs; k++) has_x[k] = slabs.from_x[k] >= 0;
    const PackedWeights<Element> from_x(in.weight_ih, slabs.slabs, H * D, H, D, D, 1);
    std::optional<PackedWeights<Element>> from_h, projection;
    if (slabs.recurrent()) from_h.emplace(in.weight_hh, slabs.slabs, H * P, H, P, P, 1);
    if (in.weight_hr != nullptr) projection.emplace(in.weight_hr, 1, 0, P, H, H, 1);
    const Workspace<T> bias(S * padded<T>(H));
    for (std::size_t s = 0; s < static_cast<std::size_t>(S); s++)
        for (long u = 0; u < H; u++) {
            T value = 0;
            if (in.bias_ih != nullptr && slabs.from_x[s] >= 0)
                value += in.bias_ih[slabs.from_x[s] * H + u];
            if (in.bias_hh != nullptr && slabs.from_h[s] >= 0)
                value += in.bias_hh[slabs.from_h[s] * H + u];
            bias.data()[static_cast<long>(s) * padded<T>(H) + u] = value;
        }

    for_partitions(sequences, S * H * (D + P), [&](SequencePartition partition) {
        const Registers<Element> registers;
        const long most = partition.count(sequences.batch());
        // The inputs' part waits for no step, so that a few sequences take it for several at once:
        // then a micro-panel of W_ih is read once for as many rows as the micro-kernel has.
        const long ahead = most > 0 ? std::max(mr<Element>() / most, 1L) : 1;
        const StepMatrix<Element> x_t(ahead * most, D), m_t(projection ? most : 0, H);
        const StepMatrix<Element> first(most, P), second(most, P);
        const StepMatrix<Element>*h = &first, *h_new = &second;
        Tiles<Element> tiles(ahead * most, S, ahead > 1 ? from_x.panels() : 1);
        Tiles<Element> projected(projection ? most : 0, 1);
        std::vector<StepRow> rows(static_cast<std::size_t>(ahead * most));
        const auto multiply_x = [&](long panel) {
            for (std::size_t k = 0; k < static_cast<std::size_t>(S); k++)
                if (has_x[k])
                    tiles.multiply(static_cast<int>(k), x_t, from_x, panel, slabs.from_x[k], false);
        };
        for (long i = 0; i < most; i++) {
            const T* initial = in.h0 == nullptr
                                   ? nullptr
                                   : in.h0 + sequences.sequence(partition.sorted_index(i)) * P;
            first.set(i, initial);
            second.set(i, initial);
        }
        for (long s = 0, taken = 0, used = 0; s < sequences.steps(); s++) {
            if (s % ahead == 0) {
                taken = used = 0;
                for (long later = s; later < std::min(s + ahead, sequences.steps()); later++) {
                    const long t = sequences.time(later);
                    for (long i = 0; i < partition.count(sequences.active(t)); i++, taken++) {
                        const StepRow row = sequences.step(partition.sorted_index(i), t);
                        rows[static_cast<std::size_t>(taken)] = row;
                        x_t.set(taken, in.x + row.position * D);
                    }
                }
                if (taken == 0) continue;
                tiles.set_rows(taken);
                for (long panel = 0; ahead > 1 && panel < from_x.panels(); panel++) {
                    breathe();
                    tiles.select(panel);
                    multiply_x(panel);
                }
            }
            const long active = partition.count(sequences.active(sequences.time(s)));
            if (active == 0) continue;
            const StepRow* row_of = rows.data() + used;
            tiles.set_rows(active);
            const NewStates<T> to{row_of, bias.data(), (projection ? m_t : *h_new).rows(),
                                  projection ? nullptr : in.y, P};
            for (long panel = 0; panel < from_x.panels(); panel++) {
                breathe();
                if (ahead > 1)
                    tiles.select_part(panel, used * from_x.columns(panel).width);
                else
                    multiply_x(panel);
                if (from_h) tiles.multiply_step_sums(*h, *from_h, panel, slabs.from_h, has_x);
                if (ahead == 1) cell.step(tiles, from_x.columns(panel), H, to);
            }
            // Few rows wait for W_hh, whose reading the functions of the cell would hold up.
            for (long panel = 0; ahead > 1 && panel < from_x.panels(); panel++) {
                tiles.select_part(panel, used * from_x.columns(panel).width);
                cell.step(tiles, from_x.columns(panel), H, to);
            }
            if (projection) {
                projected.set_rows(active);
                for (long panel = 0; panel < projection->panels(); panel++) {
                    breathe();
                    projected.multiply(0, m_t, *projection, panel, 0, false);
                    projected.template epilogue<1>(
                        projection->columns(panel), [&](long i, auto lanes, auto& sums) {
                            h_new->rows().store(i, lanes, sums[0]);
                            lanes.store(in.y + row_of[i].position * P, sums[0]);
                        });
                }
            }
            std::swap(h, h_new);
            used += active;
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
template <class T>
void step_forward(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell, T* h_n) {
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() { step_forward_in<Element>(in, sequences, cell, h_n); });
}

}  // namespace handgrad::recurrence
