// The tiled product of matmul.h for AMX, which multiplies so fast that packing is what takes the
// time: no operand is packed twice.
//
// C is divided along its longer side into blocks, one piece of work each. The operand of that side
// is packed by the thread that takes the block; the other one is packed before by all threads
// together and is multiplied with every block.
#include "core/gemm/amx.h"

namespace handgrad {

#if defined(__AVX512F__)
namespace {

// The squares of a KC block of both operands, 16 KB each, stay in the first-level cache.
constexpr long kMaxKC = 256 / kAmxSide;
// No more of a larger K is packed at a time, here in squares.
constexpr long kMaxPackedK = 2048 / kAmxSide;
// The operand that a block packs takes half of the second-level cache at most.
constexpr long kMaxPanels = 8;
constexpr long kSumsSize = kAmxSide * kAmxSide;
constexpr double kWorthSharing = 2e5;
constexpr long kLineElements = 64 / sizeof(Bf16x2), kSquareLines = kSquareElements / kLineElements;

long squares_of(long count) { return (count + kAmxSide - 1) / kAmxSide; }

// An operand as micro-panels of 32 lanes, each made of squares of 32 terms.
struct AmxPanels {
    const StridedPack<float>& pack;
    Side side;
    long lanes, k;

    long count() const { return squares_of(lanes); }
    long at(long panel) const { return panel * kAmxSide; }
    int lanes_of(long panel) const {
        return static_cast<int>(std::min<long>(kAmxSide, lanes - at(panel)));
    }
    // Square s of each panel at packed + panel · pitch + s · kSquareElements; rows are read as they
    // lie in memory.
    void operator()(Range panels, Range squares, Bf16x2* packed, long pitch) const {
        const auto one = [&](long i, long s) {
            pack_square(
                side, packed + (i - panels.begin) * pitch + (s - squares.begin) * kSquareElements,
                pack, at(i), lanes_of(i), s * kAmxSide, std::min<long>(kAmxSide, k - s * kAmxSide));
        };
        if (pack.lanes_adjacent())
            for (long s = squares.begin; s < squares.end; s++)
                for (long i = panels.begin; i < panels.end; i++) one(i, s);
        else
            for (long i = panels.begin; i < panels.end; i++)
                for (long s = squares.begin; s < squares.end; s++) one(i, s);
    }
};

// All of an operand for these squares of the sum, on all threads.
void pack_for_all(const AmxPanels& operand, Range squares, Bf16x2* packed, bool alone) {
    const long pitch = squares.count() * kSquareElements;
    if (operand.pack.lanes_adjacent())
        parallel_for(squares.count(), alone ? squares.count() : 1, [&](long begin, long end) {
            operand({0, operand.count()}, {squares.begin + begin, squares.begin + end},
                    packed + begin * kSquareElements, pitch);
        });
    else
        parallel_for(operand.count(), alone ? operand.count() : 1, [&](long begin, long end) {
            operand({begin, end}, squares, packed + begin * pitch, pitch);
        });
}

}  // namespace

void multiply_amx(long rows, long columns, long k, const StridedPack<float>& pack_a,
                  const StridedPack<float>& pack_b, const AnyEpilogue<float>& epilogue) {
    if (rows == 0 || columns == 0) return;
    const AmxPanels a{pack_a, Side::kLeft, rows, k}, b{pack_b, Side::kRight, columns, k};
    const bool down = rows >= columns;
    const AmxPanels &own = down ? a : b, &shared = down ? b : a;

    const bool alone = double(rows) * double(columns) * double(k) < kWorthSharing;
    const long squares = std::max(squares_of(k), 1L), packed_k = std::min(squares, kMaxPackedK);
    const auto [kc_blocks, kc] = KBlocks(packed_k, kMaxKC);
    const long pitch = packed_k * kSquareElements;
    const long fits = nc_bytes() / (pitch * static_cast<long>(sizeof(Bf16x2)));
    const long even = own.count() / (2 * get_threads());
    const long block = std::clamp(std::min(fits, even), 1L, kMaxPanels);

    const Workspace<Bf16x2> packed(shared.count() * pitch);
    // Partial sums stay here until the next part of K is packed.
    const bool partial = packed_k < squares;
    const Workspace<float> sums(partial ? own.count() * shared.count() * kSumsSize : 0);

    for (long first = 0; first < squares; first += packed_k) {
        const Range some{first, std::min(first + packed_k, squares)};
        pack_for_all(shared, some, packed.data(), alone);
        const long chunk = alone ? own.count() : block;
        parallel_for(own.count(), chunk, [&, kc = kc](long begin, long end) {
            Bf16x2* panels =
                thread_workspace<Bf16x2>(WorkspaceSlot::kPanelA, (end - begin) * pitch);
            float* own_sums =
                thread_workspace<float>(WorkspaceSlot::kSums, (end - begin) * kSumsSize);
            own({begin, end}, some, panels, some.count() * kSquareElements);
            const AmxTiles registers;
            // While a tile is multiplied, the one before it is stored, and a part of the next
            // squares of the shared operand is fetched.
            DeferredStore<float> deferred;
            const long lines = kSquareLines / (end - begin);
            for (long q = 0; q < shared.count(); q++) {
                breathe();
                for (long s = 0; s < some.count(); s += kc)
                    for (long t = begin; t < end; t++) {
                        const Bf16x2* x =
                            panels + ((t - begin) * some.count() + s) * kSquareElements;
                        const Bf16x2* y = packed.data() + (q * some.count() + s) * kSquareElements;
                        float* tile = partial ? sums.data() + (t * shared.count() + q) * kSumsSize
                                              : own_sums + (t - begin) * kSumsSize;
                        const long depth = std::min(kc, some.count() - s);
                        const Bf16x2* next = y + depth * kSquareElements +
                                             (t - begin) * depth * lines * kLineElements;
                        amx_micro_kernel(kAmxSide, kAmxSide, depth * kAmxElements,
                                         {down ? x : y, kAmxElements, kSquareElements},
                                         down ? y : x, kAmxSide, tile, kAmxSide, some.begin + s > 0,
                                         {&deferred, next, lines});
                        if (some.end < squares || s + kc < some.count()) continue;
                        const long i = down ? t : q, j = down ? q : t;
                        epilogue(a.at(i), a.lanes_of(i), b.at(j), b.lanes_of(j), tile, kAmxSide,
                                 &deferred);
                    }
            }
            deferred.store_all();
        });
    }
}

#endif

}  // namespace handgrad
