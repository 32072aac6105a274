// The tiled product of matmul.h for AMX, which multiplies so fast that packing is what takes the
// time: no operand is packed twice.
//
// C is cut along its longer side into blocks, one piece of work each. The operand of that side is
// packed by the thread that takes the block, the other one before by all threads together, and
// meets every block.
#include "core/amx.h"

namespace handgrad {

#if defined(__AVX512F__)
namespace {

// A step's squares of both operands stay in the first-level cache: with 512 terms the products took
// half as long again.
constexpr long kMostStep = 384 / kAmxSide;
// Of a longer sum only so much is packed at a time, here in squares.
constexpr long kRound = 2048 / kAmxSide;
// What a block packs stays in the second-level cache.
constexpr long kBlockBytes = 512 << 10;
constexpr long kMostStrips = 8;
constexpr long kSumsSize = kAmxSide * kAmxSide;
constexpr double kWorthSharing = 2e5;

long squares_of(long count) { return (count + kAmxSide - 1) / kAmxSide; }

// An operand as strips of 32 lanes, each made of squares of 32 terms.
struct Strips {
    const StridedPack<float>& pack;
    Side side;
    long lanes, terms;

    long count() const { return squares_of(lanes); }
    long at(long strip) const { return strip * kAmxSide; }
    int lanes_of(long strip) const {
        return static_cast<int>(std::min<long>(kAmxSide, lanes - at(strip)));
    }
    // Square s of each strip at packed + strip · pitch + s · kSquareElements; rows are read as they
    // lie in memory.
    void operator()(Range strips, Range squares, Bf16x2* packed, long pitch) const {
        const auto one = [&](long i, long s) {
            pack_square(side,
                        packed + (i - strips.begin) * pitch + (s - squares.begin) * kSquareElements,
                        pack, at(i), lanes_of(i), s * kAmxSide,
                        std::min<long>(kAmxSide, terms - s * kAmxSide));
        };
        if (pack.lanes_adjacent())
            for (long s = squares.begin; s < squares.end; s++)
                for (long i = strips.begin; i < strips.end; i++) one(i, s);
        else
            for (long i = strips.begin; i < strips.end; i++)
                for (long s = squares.begin; s < squares.end; s++) one(i, s);
    }
};

// All of an operand for these squares of the sum, on all threads.
void pack_for_all(const Strips& operand, Range squares, Bf16x2* packed, bool alone) {
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

void multiply_amx(long rows, long columns, long depth, const StridedPack<float>& pack_a,
                  const StridedPack<float>& pack_b, const AnyEpilogue& epilogue) {
    if (rows == 0 || columns == 0) return;
    const Strips a{pack_a, Side::kLeft, rows, depth}, b{pack_b, Side::kRight, columns, depth};
    const bool down = rows >= columns;
    const Strips &own = down ? a : b, &shared = down ? b : a;

    const bool alone = double(rows) * double(columns) * double(depth) < kWorthSharing;
    const long squares = std::max(squares_of(depth), 1L), round = std::min(squares, kRound);
    const auto [steps, step] = Steps(round, kMostStep);
    const long pitch = round * kSquareElements;
    const long fits = kBlockBytes / (pitch * static_cast<long>(sizeof(Bf16x2)));
    const long even = own.count() / (2 * get_threads());
    const long block = std::clamp(std::min(fits, even), 1L, kMostStrips);

    const Workspace<Bf16x2> packed(shared.count() * pitch);
    // Sums wait here for the next round.
    const bool waits = round < squares;
    const Workspace<float> sums(waits ? own.count() * shared.count() * kSumsSize : 0);

    for (long first = 0; first < squares; first += round) {
        const Range some{first, std::min(first + round, squares)};
        pack_for_all(shared, some, packed.data(), alone);
        const long chunk = alone ? own.count() : block;
        parallel_for(own.count(), chunk, [&, step = step](long begin, long end) {
            Bf16x2* panels =
                thread_workspace<Bf16x2>(WorkspaceSlot::kPanelA, (end - begin) * pitch);
            float* own_sums =
                thread_workspace<float>(WorkspaceSlot::kSums, (end - begin) * kSumsSize);
            own({begin, end}, some, panels, some.count() * kSquareElements);
            const AmxTiles registers;
            for (long q = 0; q < shared.count(); q++) {
                breathe();
                for (long s = 0; s < some.count(); s += step)
                    for (long t = begin; t < end; t++) {
                        const Bf16x2* x =
                            panels + ((t - begin) * some.count() + s) * kSquareElements;
                        const Bf16x2* y = packed.data() + (q * some.count() + s) * kSquareElements;
                        float* tile = waits ? sums.data() + (t * shared.count() + q) * kSumsSize
                                            : own_sums + (t - begin) * kSumsSize;
                        multiply_rows(kAmxSide, kAmxSide,
                                      std::min(step, some.count() - s) * kAmxElements,
                                      {down ? x : y, kAmxElements, kSquareElements}, down ? y : x,
                                      kAmxSide, tile, kAmxSide, some.begin + s > 0);
                        if (some.end < squares || s + step < some.count()) continue;
                        const long i = down ? t : q, j = down ? q : t;
                        epilogue(a.at(i), a.lanes_of(i), b.at(j), b.lanes_of(j), tile, kAmxSide);
                    }
            }
        });
    }
}

#endif

}  // namespace handgrad
