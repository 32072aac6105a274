// All steps backward.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/recurrence/layer.h"
#include "core/recurrence/weight_gradients.h"

namespace handgrad::recurrence {

// All gradients. gate_gradients(lanes, row, dm, dc, da, m) gives the gradients da of the cell's
// kGateGradients slabs, changes dc, and returns the part of dh before that is not from the product;
// kToX and kToH say which slabs are multiplied with those of W_ih and W_hh.
template <class Element, class T, class Cell>
void run_backward_in(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, const T* dy,
                     const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    constexpr bool kRecurrent = Cell::kFromH[0] >= 0;
    constexpr int kGateGradients = Cell::kGateGradients;
    constexpr long kSlabs = Cell::kSlabs;
    const long H = in.hidden, P = in.size, D = in.features, all = sequences.rows();
    const long pitch = padded<T>(H), pitch_h = padded<T>(P);
    std::optional<PackedWeights<Element>> to_x, to_h, unprojected;
    if (out.dx != nullptr) to_x.emplace(in.weight_ih, kSlabs, H * D, D, 1, H, D);
    if constexpr (kRecurrent) to_h.emplace(in.weight_hh, kSlabs, H * P, P, 1, H, P);
    if (in.weight_hr != nullptr) unprojected.emplace(in.weight_hr, 1, 0, H, 1, P, H);
    const bool keep_m = in.weight_hr != nullptr && out.dweight_hr != nullptr;
    // Slabs that are multiplied with both W_ih and W_hh are one matrix; each of the others is one
    // of its own.
    std::vector<std::unique_ptr<RowPanels<T>>> da;
    da.push_back(std::make_unique<RowPanels<T>>(all, Cell::kShared, H));
    for (int k = Cell::kShared; k < kGateGradients; k++)
        da.push_back(std::make_unique<RowPanels<T>>(all, 1, H));
    const Workspace<T> m(keep_m ? all * H : 0);
    const RowPanels<T> dh_rows(keep_m ? all : 0, 1, P);

    for_partitions(sequences, kGateGradients * H * (D + P), [&](SequencePartition partition) {
        const Registers<Element> registers;
        const long most = partition.count(sequences.batch());
        const Workspace<T> dh(most * pitch_h), dc(most * pitch), dm(unprojected ? most * pitch : 0);
        const StepMatrix<Element> dh_t(unprojected ? most : 0, P);
        std::array<std::optional<StepMatrix<Element>>, kGateGradients> da_t;
        for (auto& slab : da_t) slab.emplace(most, H);
        Tiles<Element, 1> tiles(most);
        std::vector<StepRow> rows(static_cast<std::size_t>(most));
        const auto set = [](T* row, const T* values, long count) {
            if (values == nullptr)
                std::fill_n(row, count, T(0));
            else
                copy_values(row, values, count);
        };
        for (long i = 0; i < most; i++) {
            const long n = sequences.sequence(partition.sorted_index(i));
            set(dh.data() + i * pitch_h, dh_n == nullptr ? nullptr : dh_n + n * P, P);
            set(dc.data() + i * pitch, dc_n == nullptr ? nullptr : dc_n + n * H, H);
            if (out.dx != nullptr) clear_padding(out.dx, sequences, partition.sorted_index(i), D);
        }
        for (long s = sequences.steps() - 1; s >= 0; s--) {
            const long t = sequences.time(s), active = partition.count(sequences.active(t));
            if (active == 0) continue;
            tiles.set_rows(active);
            for (long i = 0; i < active; i++) {
                const StepRow row = sequences.step(partition.sorted_index(i), t);
                rows[static_cast<std::size_t>(i)] = row;
                T* dh_row = dh.data() + i * pitch_h;
                transform<T>(0, P, [&](auto lanes) {
                    lanes.store(dh_row, lanes.load(dh_row) + lanes.load(dy + row.position * P));
                });
                if (unprojected) dh_t.set(i, dh_row);
                if (keep_m)
                    for (long u = 0; u < P; u += kLanes<T>)
                        dh_rows.set(row.row, 0, u, load(dh_row + u));
            }
            if (unprojected)
                for (long panel = 0; panel < unprojected->panels(); panel++) {
                    breathe();
                    tiles.multiply(0, dh_t, *unprojected, panel, 0, false);
                    tiles.epilogue(*unprojected, panel, [&](long i, auto lanes, auto& sums) {
                        lanes.store(dm.data() + i * pitch, sums[0]);
                    });
                }
            for (long i = 0; i < active; i++) {
                const StepRow& row = rows[static_cast<std::size_t>(i)];
                T* dh_row = dh.data() + i * pitch_h;
                const T* dm_row = unprojected ? dm.data() + i * pitch : dh_row;
                T* m_row = keep_m ? m.data() + row.row * H : nullptr;
                transform<T>(0, H, [&](auto lanes) {
                    Vec<T> dc_here = lanes.load(dc.data() + i * pitch);
                    std::array<Vec<T>, kGateGradients> gradients;
                    const Vec<T> direct = cell.gate_gradients(lanes, row, lanes.load(dm_row),
                                                              dc_here, gradients, m_row);
                    lanes.store(dc.data() + i * pitch, dc_here);
                    for (int k = 0; k < kGateGradients; k++) {
                        da_t[k]->store(i, lanes, gradients[k]);
                        if (k < Cell::kShared)
                            da[0]->set(row.row, k, lanes.at, gradients[k]);
                        else
                            da[static_cast<std::size_t>(k - Cell::kShared + 1)]->set(
                                row.row, 0, lanes.at, gradients[k]);
                    }
                    if constexpr (Cell::kDirect) lanes.store(dh_row, direct);
                });
            }
            if constexpr (kRecurrent)
                for (long panel = 0; panel < to_h->panels(); panel++) {
                    breathe();
                    for (int k = 0; k < kSlabs; k++)
                        tiles.multiply(0, *da_t[Cell::kToH[k]], *to_h, panel, k, k > 0);
                    tiles.epilogue(*to_h, panel, [&](long i, auto lanes, auto& sums) {
                        T* dh_row = dh.data() + i * pitch_h;
                        lanes.store(dh_row, Cell::kDirect ? lanes.load(dh_row) + sums[0] : sums[0]);
                    });
                }
            if (to_x)
                for (long panel = 0; panel < to_x->panels(); panel++) {
                    breathe();
                    for (int k = 0; k < kSlabs; k++)
                        tiles.multiply(0, *da_t[Cell::kToX[k]], *to_x, panel, k, k > 0);
                    tiles.epilogue(*to_x, panel, [&](long i, auto lanes, auto& sums) {
                        lanes.store(out.dx + rows[static_cast<std::size_t>(i)].position * D,
                                    sums[0]);
                    });
                }
        }
        for (long i = 0; i < most; i++) {
            const long n = sequences.sequence(partition.sorted_index(i));
            if (out.dh0 != nullptr) copy_values(out.dh0 + n * P, dh.data() + i * pitch_h, P);
            if (out.dc0 != nullptr) copy_values(out.dc0 + n * H, dc.data() + i * pitch, H);
        }
    });

    std::vector<const T*> x_rows(static_cast<std::size_t>(all)), h_rows(x_rows.size());
    for (long t = 0; t < sequences.steps(); t++)
        for (long sorted_index = 0; sorted_index < sequences.active(t); sorted_index++) {
            const StepRow row = sequences.step(sorted_index, t);
            x_rows[static_cast<std::size_t>(row.row)] = in.x + row.position * D;
            if constexpr (kRecurrent) h_rows[static_cast<std::size_t>(row.row)] = in.h_before(row);
        }
    const auto sums = [&](const RowPanels<T>& panels, long slab, bool with_x, bool with_h) {
        const auto at = [&](T* target, long width) {
            return target == nullptr ? nullptr : target + slab * H * width;
        };
        T* dbias_ih = with_x ? at(out.dbias_ih, 1) : nullptr;
        T* dbias_hh = with_h ? at(out.dbias_hh, 1) : nullptr;
        weight_gradients<Element>(panels,
                                  {{x_rows.data(), D, with_x ? at(out.dweight_ih, D) : nullptr},
                                   {h_rows.data(), P, with_h ? at(out.dweight_hh, P) : nullptr}},
                                  dbias_ih != nullptr ? dbias_ih : dbias_hh);
        if (dbias_ih != nullptr && dbias_hh != nullptr)
            copy_values(dbias_hh, dbias_ih, panels.slabs() * H);
    };
    sums(*da[0], 0, true, kRecurrent);
    if constexpr (kGateGradients > Cell::kShared) {
        sums(*da[1], Cell::kShared, true, false);
        sums(*da[2], Cell::kShared, false, true);
    }
    if (keep_m) {
        std::vector<const T*> m_rows(static_cast<std::size_t>(all));
        for (long r = 0; r < all; r++) m_rows[static_cast<std::size_t>(r)] = m.data() + r * H;
        weight_gradients<Element>(dh_rows, {{m_rows.data(), H, out.dweight_hr}}, nullptr);
    }
}

// The same at the precision in force.
template <class T, class Cell>
void run_backward(const Inputs<T>& in, const Sequences& sequences, const Cell& cell, const T* dy,
                  const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() {
            run_backward_in<Element>(in, sequences, cell, dy, dh_n, dc_n, out);
        });
}

}  // namespace handgrad::recurrence
