// All steps backward.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/recurrent/layer.h"
#include "core/recurrent/weight_gradients.h"

namespace handgrad::recurrence {

// All gradients.
template <class Element, class T>
void step_backward_in(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell,
                      const T* dy, const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    const CellSlabs& slabs = cell.slabs;
    const bool recurrent = slabs.recurrent();
    const auto gate_gradients = static_cast<std::size_t>(slabs.gate_gradients);
    const auto shared = static_cast<std::size_t>(slabs.shared);
    const long H = in.hidden, P = in.size, D = in.features, all = sequences.rows();
    const long pitch = padded<T>(H), pitch_h = padded<T>(P);
    std::optional<PackedWeights<Element>> to_x, to_h, unprojected;
    if (out.dx != nullptr) to_x.emplace(in.weight_ih, slabs.slabs, H * D, D, 1, H, D);
    if (recurrent) to_h.emplace(in.weight_hh, slabs.slabs, H * P, P, 1, H, P);
    if (in.weight_hr != nullptr) unprojected.emplace(in.weight_hr, 1, 0, H, 1, P, H);
    const bool keep_m = in.weight_hr != nullptr && out.dweight_hr != nullptr;
    // Slabs that are multiplied with both W_ih and W_hh are one matrix; each of the others is one
    // of its own.
    std::vector<std::unique_ptr<RowPanels<T>>> da;
    da.push_back(std::make_unique<RowPanels<T>>(all, slabs.shared, H));
    for (std::size_t k = shared; k < gate_gradients; k++)
        da.push_back(std::make_unique<RowPanels<T>>(all, 1, H));
    const Workspace<T> m(keep_m ? all * H : 0);
    const RowPanels<T> dh_rows(keep_m ? all : 0, 1, P);

    for_partitions(sequences, slabs.gate_gradients * H * (D + P), [&](SequencePartition partition) {
        const Registers<Element> registers;
        const long most = partition.count(sequences.batch());
        const Workspace<T> dh(most * pitch_h), dc(most * pitch), dm(unprojected ? most * pitch : 0);
        const StepMatrix<Element> dh_t(unprojected ? most : 0, P);
        std::array<std::optional<StepMatrix<Element>>, kMostSlabs> da_t;
        NewGradients<T> to;
        for (std::size_t k = 0; k < gate_gradients; k++) {
            to.rows[k] = da_t[k].emplace(most, H).rows();
            to.panels[k] = da[k < shared ? 0 : k - shared + 1].get();
            to.slabs[k] = k < shared ? static_cast<long>(k) : 0;
        }
        Tiles<Element> tiles(most, 1);
        const auto multiply_gradients = [&](const SlabNumbers& of,
                                            const PackedWeights<Element>& weights, long panel) {
            for (std::size_t k = 0; k < static_cast<std::size_t>(slabs.slabs); k++)
                tiles.multiply(0, *da_t[static_cast<std::size_t>(of[k])], weights, panel,
                               static_cast<long>(k), k > 0);
        };
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
                    tiles.template epilogue<1>(unprojected->columns(panel),
                                               [&](long i, auto lanes, auto& sums) {
                                                   lanes.store(dm.data() + i * pitch, sums[0]);
                                               });
                }
            for (long i = 0; i < active; i++) {
                const StepRow& row = rows[static_cast<std::size_t>(i)];
                T* dh_row = dh.data() + i * pitch_h;
                cell.gate_gradients(row, i, H, unprojected ? dm.data() + i * pitch : dh_row,
                                    dc.data() + i * pitch, dh_row,
                                    keep_m ? m.data() + row.row * H : nullptr, to);
            }
            if (to_h)
                for (long panel = 0; panel < to_h->panels(); panel++) {
                    breathe();
                    multiply_gradients(slabs.to_h, *to_h, panel);
                    tiles.template epilogue<1>(to_h->columns(panel), [&](long i, auto lanes,
                                                                         auto& sums) {
                        T* dh_row = dh.data() + i * pitch_h;
                        lanes.store(dh_row, slabs.direct ? lanes.load(dh_row) + sums[0] : sums[0]);
                    });
                }
            if (to_x)
                for (long panel = 0; panel < to_x->panels(); panel++) {
                    breathe();
                    multiply_gradients(slabs.to_x, *to_x, panel);
                    tiles.template epilogue<1>(
                        to_x->columns(panel), [&](long i, auto lanes, auto& sums) {
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
            if (recurrent) h_rows[static_cast<std::size_t>(row.row)] = in.h_before(row);
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
    sums(*da[0], 0, true, recurrent);
    if (gate_gradients > shared) {
        sums(*da[1], slabs.shared, true, false);
        sums(*da[2], slabs.shared, false, true);
    }
    if (keep_m) {
        std::vector<const T*> m_rows(static_cast<std::size_t>(all));
        for (long r = 0; r < all; r++) m_rows[static_cast<std::size_t>(r)] = m.data() + r * H;
        weight_gradients<Element>(dh_rows, {{m_rows.data(), H, out.dweight_hr}}, nullptr);
    }
}

// The same at the precision in force.
template <class T>
void step_backward(const Inputs<T>& in, const Sequences& sequences, const Cell<T>& cell,
                   const T* dy, const T* dh_n, const T* dc_n, const Gradients<T>& out) {
    at_precision<T, On<Bf16Unit::kAvx512, Bf16x2>, On<Bf16Unit::kAmx, Bf16x2>>(
        [&]<class Element>() {
            step_backward_in<Element>(in, sequences, cell, dy, dh_n, dc_n, out);
        });
}

}  // namespace handgrad::recurrence
