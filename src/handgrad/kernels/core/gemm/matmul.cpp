#include "core/gemm/matmul.h"

#include "core/gemm/bf16.h"

namespace handgrad {
namespace {

// A product of so many multiply-adds packs an operand of all blocks once.
constexpr double kWorthPackingOnce = 5e7;
bool is_large(long rows, long columns, long k) {
    return double(rows) * double(columns) * double(k) >= kWorthPackingOnce;
}

constexpr long kWorthPackingA = 256;  // columns, where it is preferred

// A left operand whose values along k are adjacent is read by the micro-kernel unpacked, unless its
// rows collide in the cache: to pack it takes a tenth as long as a product with 384 columns. Bf16x2
// are rounded first, and so are packed.
template <class T>
constexpr bool kMayLieInPlace = std::is_floating_point_v<T>;
template <class T>
bool lies_in_place(long rows, long columns, long k, const PackOf<T>& pack_a) {
    if constexpr (kMayLieInPlace<T>) {
        if (kPrefersPackedA && columns >= kWorthPackingA && is_large(rows, columns, k))
            return false;
        return pack_a.k_stride == 1 &&
               !rows_collide(kMR, pack_a.lane_stride * static_cast<long>(sizeof(T)));
    }
    return false;
}

// The largest KC, counted in panel elements.
template <class T>
long most_kc(bool a_in_place) {
    return kPrefersPackedA && !a_in_place ? packed_kc(kMR, kNR<T>, sizeof(T))
                                          : largest_kc(kMR, sizeof(T));
}

// The tiling of a product.
template <class T>
struct Tiling {
    bool a_in_place;
    RowTiles tiles;
    ColumnPanels<T> panels;
    long k;
    KBlocks k_blocks;
    long size_a, size_b;  // of a micro-panel

    Tiling(long rows, long columns, long k, const PackOf<T>& pack_a)
        : a_in_place(lies_in_place<T>(rows, columns, k, pack_a)),
          tiles(rows),
          panels(columns),
          k(k),
          k_blocks(k, most_kc<T>(a_in_place)),
          size_a(std::min<long>(rows, kMR) * k_blocks.size),
          size_b(kNR<T> * k_blocks.size) {}

    long kc(long kb) const { return std::min(k_blocks.size, k - kb * k_blocks.size); }

    // The micro-panels of B in an NC block, of `some` in all: blocks are of one size, as near as
    // can be.
    long nc_panels(long some) const {
        const long bytes = size_b * static_cast<long>(sizeof(T));
        const long most = std::max(nc_bytes() / (bytes + 1), 1L);
        const long blocks = std::max((some + most - 1) / most, 1L);
        return std::max((some + blocks - 1) / blocks, 1L);
    }
};

// Packs kc values of k from value p of KC block kb on, for each of these panels into the
// micro-panel of that block: those of `k_blocks` lie `size` values apart.
template <class T, class Panels>
void pack_k_range(const Tiling<T>& tiling, const Panels& panels, Range some, Range k_blocks,
                  long kb, long p, long kc, const PackOf<T>& pack, T* packed, long size) {
    for (long i = some.begin; i < some.end; i++) {
        const long place = (i - some.begin) * k_blocks.count() + kb - k_blocks.begin;
        pack(packed + place * size + p * panels.width(i), panels.width(i), panels.at(i),
             panels.lanes(i), kb * tiling.k_blocks.size + p, kc);
    }
}

// Packs these micro-panels of an operand on the calling thread.
template <class T, class Panels>
void pack_micro_panels(const Tiling<T>& tiling, const Panels& panels, Range some, Range k_blocks,
                       const PackOf<T>& pack, T* packed, long size) {
    for (long kb = k_blocks.begin; kb < k_blocks.end; kb++)
        for_each_chunk(pack.lanes_adjacent(), tiling.kc(kb), [&](long p, long kc) {
            breathe();
            pack_k_range(tiling, panels, some, k_blocks, kb, p, kc, pack, packed, size);
        });
}

// Operands that are packed already, for all blocks, and partial sums that later KC blocks add to,
// those of tile t and panel q at t · panels + q. Each may be null.
template <class T>
struct Shared {
    const T* a;
    const T* b;
    SumOf<T>* sums;
};

template <class T>
void prefetch(const T* from, long count) {
    for (long i = 0; i < count; i += 64 / long(sizeof(T))) __builtin_prefetch(from + i);
}

// Multiplies these KC blocks of one block of C, on the calling thread. An operand that is neither
// packed nor read unpacked is packed here: all of the block's A; of B an NC block at a time, which
// is then multiplied with every tile of A. T is the panel element, and selects the micro-kernel.
template <class T>
void multiply_block(const Tiling<T>& tiling, Range tiles, Range panels, Range k_blocks,
                    const PackOf<T>& pack_a, const PackOf<T>& pack_b,
                    const AnyEpilogue<SumOf<T>>& epilogue, const Shared<T>& shared) {
    const long pitch_a = k_blocks.count() * tiling.size_a;
    const long pitch_b = (shared.b == nullptr ? 1 : k_blocks.count()) * tiling.size_b;
    const long nc = tiling.nc_panels(panels.count());
    T* own_b = shared.b == nullptr ? thread_workspace<T>(WorkspaceSlot::kPanelB, nc * tiling.size_b)
                                   : nullptr;
    const bool in_place = tiling.a_in_place;
    const T* panels_a = shared.a;
    if (shared.a != nullptr) {
        panels_a += tiles.begin * pitch_a;
    } else if (!in_place) {
        T* own_a = thread_workspace<T>(WorkspaceSlot::kPanelA, tiles.count() * pitch_a);
        pack_micro_panels(tiling, tiling.tiles, tiles, k_blocks, pack_a, own_a, tiling.size_a);
        panels_a = own_a;
    }
    // With one KC block a tile is finished at once, and the next one has other memory, as this
    // one's store may be deferred; with several its partial sum is kept for the next KC block.
    constexpr long size_c = kMR * kNR<T>;
    const bool once = tiling.k_blocks.count == 1;
    using Sum = SumOf<T>;
    Sum* own_sums =
        shared.sums != nullptr
            ? nullptr
            : thread_workspace<Sum>(WorkspaceSlot::kSums, (once ? 2 : tiles.count() * nc) * size_c);
    DeferredStore<Sum> deferred;
    int turn = 0;
    for (long first = panels.begin; first < panels.end; first += nc) {
        const Range some{first, std::min(first + nc, panels.end)};
        // With each of these panels of B, a part of the next micro-panel of A is prefetched.
        const long part_a = tiling.size_a / some.count() + 1;
        for (long kb = k_blocks.begin; kb < k_blocks.end; kb++) {
            if (shared.b == nullptr)
                pack_micro_panels(tiling, tiling.panels, some, {kb, kb + 1}, pack_b, own_b,
                                  tiling.size_b);
            const T* panels_b = shared.b == nullptr ? own_b
                                                    : shared.b + first * pitch_b +
                                                          (kb - k_blocks.begin) * tiling.size_b;
            for (long t = tiles.begin; t < tiles.end; t++) {
                breathe();
                for (long q = some.begin; q < some.end; q++) {
                    const long own = once ? turn ^= 1 : (t - tiles.begin) * nc + q - first;
                    Sum* sum = shared.sums != nullptr
                                   ? shared.sums + (t * tiling.panels.count + q) * size_c
                                   : own_sums + own * size_c;
                    const int rows = tiling.tiles.rows_of(t), width = tiling.panels.width(q);
                    const T* panel_b = panels_b + (q - first) * pitch_b;
                    const long kc = tiling.kc(kb);
                    if constexpr (kMayLieInPlace<T>) {
                        if (in_place)
                            micro_kernel<kAnyPitch>(
                                rows, width, kc,
                                pack_a.at(tiling.tiles.at(t), kb * tiling.k_blocks.size), panel_b,
                                sum, kb > 0, pack_a.lane_stride,
                                q == some.begin ? rows * pack_a.lane_stride : 0, &deferred);
                    }
                    if (!in_place) {
                        const T* panel_a = panels_a + (t - tiles.begin) * pitch_a +
                                           (kb - k_blocks.begin) * tiling.size_a;
                        if (kPrefersPackedA)
                            prefetch(panel_a + pitch_a + (q - first) * part_a, part_a);
                        micro_kernel(rows, width, kc, panel_a, panel_b, sum, kb > 0, 0,
                                     q == some.begin ? pitch_a : 0, &deferred);
                    }
                    if (kb < tiling.k_blocks.count - 1) continue;
                    const long row = tiling.tiles.at(t), column = tiling.panels.at(q);
                    epilogue(row, rows, column, tiling.panels.lanes(q), sum, width, &deferred);
                    deferred.store_others(sum);
                }
            }
        }
        deferred.store_all();
    }
}

// The partition of C into blocks, enough of them to balance the threads. A large C is divided along
// its longer side: a thread packs its piece of that operand where it is going to use it, and the
// other operand is packed once for all blocks. If A is read unpacked C is divided along its
// columns, and threads are independent. A small C is divided as square as it can be, and every
// block packs what it needs. Of a very large K a few KC blocks are taken at a time, so that no
// operand is packed as a whole.
template <class T>
struct BlockPartition {
    long k_blocks;  // of one block
    long down = 1, across = 1;
    bool pack_a_once = false, pack_b_once = false;

    explicit BlockPartition(const Tiling<T>& tiling)
        : k_blocks(std::min(tiling.k_blocks.count,
                            4 * largest_kc(kMR, sizeof(T)) / std::max(tiling.k_blocks.size, 1L))),
          tiles_(tiling.tiles.count),
          panels_(tiling.panels.count) {
        long rows = tiling.tiles.rows, columns = tiling.panels.columns;
        const double work = double(rows) * double(columns) * double(tiling.k);
        const bool large = is_large(rows, columns, tiling.k), wide = columns >= rows;
        const bool a_in_place = tiling.a_in_place;
        const long threads = work < kWorthSharing ? 1 : get_threads();
        const long wanted = threads == 1 && !large ? 1 : 2 * threads;
        const long narrowest = (large ? 1 : 2) * kNR<T>;
        while (down * across < wanted) {
            const bool by_columns =
                large ? wide || (a_in_place && columns >= kWideEnough) : columns >= rows;
            if (columns > narrowest && by_columns)
                across *= 2;
            else if (rows > 2 * kMR)
                down *= 2;
            else if (columns > kNR<T>)
                across *= 2;
            else
                break;
            rows = (tiling.tiles.rows + down - 1) / down;
            columns = (tiling.panels.columns + across - 1) / across;
        }
        const bool a_reused = large && across > 1;
        pack_a_once = a_reused && !a_in_place;
        const long values = mc_bytes() / static_cast<long>(sizeof(T));
        const long most = std::max(values / (k_blocks * tiling.size_a + 1), 1L);
        while (!a_reused && tiles_ > down * most) down *= 2;
        down = std::min(down, tiles_);
        across = std::min(across, panels_);
        pack_b_once = large && down > 1;
    }

    Range tiles(long block) const { return part(tiles_, block % down, down); }
    Range panels(long block) const { return part(panels_, block / down, across); }

  private:
    static constexpr double kWorthSharing = 2e5;
    // The number of columns from which on it pays to read an unpacked A once for each half of them.
    static constexpr long kWideEnough = 6 * kNR<T>;
    long tiles_, panels_;

    static Range part(long all, long i, long parts) {
        return {i * all / parts, (i + 1) * all / parts};
    }
};

// Packs all of an operand for these KC blocks, on all threads: if lanes are adjacent a thread takes
// whole rows of memory, otherwise micro-panels.
template <class T, class Panels>
void pack_for_all(const Tiling<T>& tiling, const Panels& panels, Range k_blocks,
                  const PackOf<T>& pack, T* packed, long size) {
    const Range all{0, panels.count};
    const bool by_rows = pack.lanes_adjacent();
    constexpr long kRows = 32;
    const long pieces = by_rows ? (tiling.k_blocks.size + kRows - 1) / kRows : panels.count;
    parallel_for(k_blocks.count() * pieces, 1, [&](long begin, long end) {
        for (long i = begin; i < end; i++) {
            const long kb = k_blocks.begin + i % k_blocks.count(), piece = i / k_blocks.count();
            if (by_rows) {
                const long p = piece * kRows;
                const long kc = std::min(kRows, tiling.kc(kb) - p);
                if (kc > 0)
                    pack_k_range(tiling, panels, all, k_blocks, kb, p, kc, pack, packed, size);
            } else {
                pack_k_range(tiling, panels, {piece, piece + 1}, k_blocks, kb, 0, tiling.kc(kb),
                             pack, packed + piece * k_blocks.count() * size, size);
            }
        }
    });
}

// The epilogue of C, given tiles of Cᵀ.
template <class T>
struct TransposedEpilogue {
    const AnyEpilogue<T>& epilogue;

    void operator()(long row, int rows, long column, int columns, const T* tile, int width) const {
        constexpr int n = kLanes<T>, most = (kMR + n - 1) / n * n;
        alignas(64) T turned[kNR<T> * most];
        for (int c = 0; c < columns; c += n)
            for (int r = 0; r < rows; r += n)
                pack_transposed_square(turned + c * most + r, most, n, n, [&](int l) {
                    return r + l < rows ? tile + (r + l) * width + c : nullptr;
                });
        for (int c = 0; c < columns; c += kMR)
            epilogue(column + c, std::min(kMR, columns - c), row, rows, turned + c * most, most);
    }
};

// True if fewer values are packed and turned for Cᵀ = Bᵀ Aᵀ, in which B is read unpacked: that of a
// few rows with the weights of a layer. Its sums are the same, k by k.
template <class T>
bool is_better_transposed(long rows, long columns, long k, const PackOf<T>& pack_a,
                          const PackOf<T>& pack_b) {
    if (!lies_in_place<T>(columns, rows, k, pack_b)) return false;
    const double packed_a = lies_in_place<T>(rows, columns, k, pack_a) ? 0 : double(rows) * k;
    return double(rows) * (columns + k) < packed_a + double(columns) * k;
}

template <class T>
void multiply_as_is(long rows, long columns, long k, const PackOf<T>& pack_a,
                    const PackOf<T>& pack_b, const AnyEpilogue<SumOf<T>>& epilogue) {
    const Tiling<T> tiling(rows, columns, k, pack_a);
    const BlockPartition<T> partition(tiling);
    const auto run = [&](Range k_blocks, const Shared<T>& shared) {
        parallel_for(partition.down * partition.across, 1, [&](long begin, long end) {
            for (long b = begin; b < end; b++) {
                multiply_block(tiling, partition.tiles(b), partition.panels(b), k_blocks, pack_a,
                               pack_b, epilogue, shared);
            }
        });
    };
    const bool partial = partition.k_blocks < tiling.k_blocks.count;
    if (!partition.pack_a_once && !partition.pack_b_once && !partial)
        return run({0, tiling.k_blocks.count}, {nullptr, nullptr, nullptr});
    using Sum = SumOf<T>;
    const Workspace<T> a(
        partition.pack_a_once ? tiling.tiles.count * partition.k_blocks * tiling.size_a : 0);
    const Workspace<T> b(
        partition.pack_b_once ? tiling.panels.count * partition.k_blocks * tiling.size_b : 0);
    const Workspace<Sum> sums(partial ? tiling.tiles.count * tiling.panels.count * kMR * kNR<T>
                                      : 0);
    for (long kb = 0; kb < tiling.k_blocks.count; kb += partition.k_blocks) {
        const Range k_blocks{kb, std::min(kb + partition.k_blocks, tiling.k_blocks.count)};
        if (partition.pack_a_once)
            pack_for_all(tiling, tiling.tiles, k_blocks, pack_a, a.data(), tiling.size_a);
        if (partition.pack_b_once)
            pack_for_all(tiling, tiling.panels, k_blocks, pack_b, b.data(), tiling.size_b);
        run(k_blocks,
            {partition.pack_a_once ? a.data() : nullptr, partition.pack_b_once ? b.data() : nullptr,
             partial ? sums.data() : nullptr});
    }
}

}  // namespace

template <class T>
void multiply(long rows, long columns, long k, const PackOf<T>& pack_a, const PackOf<T>& pack_b,
              const AnyEpilogue<SumOf<T>>& epilogue) {
    if (rows == 0 || columns == 0) return;
    if (is_better_transposed<T>(rows, columns, k, pack_a, pack_b))
        return multiply_as_is<T>(columns, rows, k, pack_b, pack_a,
                                 TransposedEpilogue<SumOf<T>>{epilogue});
    multiply_as_is<T>(rows, columns, k, pack_a, pack_b, epilogue);
}

ProductPlan plan_product(long rows, long columns, long k) {
    StridedPack<float> a{nullptr, k, 1}, b{nullptr, 1, columns};
    const bool transposed = is_better_transposed<float>(rows, columns, k, a, b);
    if (transposed) {
        std::swap(rows, columns);
        std::swap(a, b);
    }
    const Tiling<float> tiling(rows, columns, k, a);
    const BlockPartition<float> partition(tiling);
    const long panels = partition.panels(0).count();
    return {transposed,
            tiling.a_in_place,
            partition.pack_a_once,
            partition.pack_b_once,
            tiling.k_blocks.size,
            tiling.nc_panels(panels) * kNR<float>,
            partition.down,
            partition.across};
}

template <class T>
void multiply_here(long rows, long columns, long k, const PackOf<T>& pack_a,
                   const PackOf<T>& pack_b, const AnyEpilogue<SumOf<T>>& epilogue) {
    const Tiling<T> tiling(rows, columns, k, pack_a);
    multiply_block(tiling, {0, tiling.tiles.count}, {0, tiling.panels.count},
                   {0, tiling.k_blocks.count}, pack_a, pack_b, epilogue,
                   {nullptr, nullptr, nullptr});
}

template void multiply<float>(long, long, long, const PackOf<float>&, const PackOf<float>&,
                              const AnyEpilogue<float>&);
template void multiply_here<float>(long, long, long, const PackOf<float>&, const PackOf<float>&,
                                   const AnyEpilogue<float>&);
template void multiply<double>(long, long, long, const PackOf<double>&, const PackOf<double>&,
                               const AnyEpilogue<double>&);
template void multiply_here<double>(long, long, long, const PackOf<double>&, const PackOf<double>&,
                                    const AnyEpilogue<double>&);
#if defined(__AVX512F__)
template void multiply<Bf16x2>(long, long, long, const PackOf<Bf16x2>&, const PackOf<Bf16x2>&,
                               const AnyEpilogue<float>&);
#endif

}  // namespace handgrad
