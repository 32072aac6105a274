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
    [[maybe_unused]] constexpr auto has_x = [] {
        std::array<bool, S> found{};
        for (std::size_t k = 0; k < S; k++) found[k] = Cell::kFromX[k] >= 0;
        return found;
    }();
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
        // The inputs' part waits for no step, so that a few sequences take it for several at once:
        // then a micro-panel of W_ih is read once for as many rows as the micro-kernel has.
        const long ahead = most > 0 ? std::max(mr<Element>() / most, 1L) : 1;
        const StepMatrix<Element> x_t(ahead * most, D), m_t(projection ? most : 0, H);
        const StepMatrix<Element> first(most, P), second(most, P);
        const StepMatrix<Element>*h = &first, *h_new = &second;
        Tiles<Element, S> tiles(ahead * most, ahead > 1 ? from_x.panels() : 1);
        Tiles<Element, 1> projected(projection ? most : 0);
        std::vector<StepRow> rows(static_cast<std::size_t>(ahead * most));
        const auto multiply_x = [&](long panel) {
            for (int k = 0; k < S; k++)
                if (Cell::kFromX[k] >= 0)
                    tiles.multiply(k, x_t, from_x, panel, Cell::kFromX[k], false);
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
                    tiles.select(panel, 0);
                    multiply_x(panel);
                }
            }
            const long active = partition.count(sequences.active(sequences.time(s)));
            if (active == 0) continue;
            const StepRow* row_of = rows.data() + used;
            tiles.set_rows(active);
            const auto finish = [&](long panel) {
                tiles.epilogue(from_x, panel, [&](long i, auto lanes, auto& sums) {
                    const StepRow& row = row_of[i];
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
            };
            for (long panel = 0; panel < from_x.panels(); panel++) {
                breathe();
                if (ahead > 1)
                    tiles.select(panel, used * from_x.width(panel));
                else
                    multiply_x(panel);
                if constexpr (kRecurrent)
                    tiles.multiply_step_sums(*h, *from_h, panel, Cell::kFromH, has_x);
                if (ahead == 1) finish(panel);
            }
            // Few rows wait for W_hh, whose reading the functions of the cell would hold up.
            for (long panel = 0; ahead > 1 && panel < from_x.panels(); panel++) {
                tiles.select(panel, used * from_x.width(panel));
                finish(panel);
            }
            if (projection) {
                projected.set_rows(active);
                for (long panel = 0; panel < projection->panels(); panel++) {
                    breathe();
                    projected.multiply(0, m_t, *projection, panel, 0, false);
                    projected.epilogue(*projection, panel, [&](long i, auto lanes, auto& sums) {
                        h_new->store(i, lanes, sums[0]);
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
template <class T, class Cell>
void run_forward(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, T* h_n) {
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() { run_forward_in<Element>(in, sequences, cell, h_n); });
}

}  // namespace handgrad::recurrence
