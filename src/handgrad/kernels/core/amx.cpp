#include "core/amx.h"

#if defined(__AVX512F__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace handgrad {

#if defined(__AVX512F__)
namespace {

// Linux hands out the tile registers on request, once per process.
bool handed_out() {
#if defined(__linux__)
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

// CPUID leaf 7: EDX bits 22 and 24 say AMX-BF16 and AMX-TILE.
bool amx_present() {
    unsigned a = 7, b, c = 0, d;
    asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (d >> 22 & 1) && (d >> 24 & 1);
}

// Constructors and destructors cannot be compiled for another target.
__attribute__((target("amx-tile"))) void load_configuration(const void* config) {
    see_memory(config);
    _tile_loadconfig(config);
}
__attribute__((target("amx-tile"))) void release() { _tile_release(); }

}  // namespace

bool amx_granted() { return amx_present() && handed_out(); }

AmxTiles::AmxTiles(int rows, int pairs) {
    struct alignas(64) {
        std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
        std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        std::uint8_t rows[16] = {};
    } config;
    std::fill_n(config.rows, 6, static_cast<std::uint8_t>(rows));
    std::fill_n(config.rows + 6, 2, static_cast<std::uint8_t>(pairs));
    std::fill_n(config.row_bytes + 4, 2, static_cast<std::uint16_t>(4 * pairs));
    load_configuration(&config);
}

AmxTiles::~AmxTiles() { release(); }

__attribute__((target("amx-tile,amx-bf16"))) void multiply_square(long terms, const Pair* a,
                                                                  const Pair* b, float* tile,
                                                                  bool accumulate) {
    constexpr int stride = kAmxSide * sizeof(float);
    see_memory(tile);
    if (accumulate) {
        _tile_loadd(0, tile, stride);
        _tile_loadd(1, tile + 16, stride);
        _tile_loadd(2, tile + 16 * kAmxSide, stride);
        _tile_loadd(3, tile + 16 * kAmxSide + 16, stride);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (long t = 0; t < terms;
         t += kAmxTerms, a += kAmxSide * kAmxPairs, b += kAmxPairs * kAmxSide) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, stride);
        _tile_loadd(7, b + 16, stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + 16 * kAmxPairs, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, tile, stride);
    _tile_stored(1, tile + 16, stride);
    _tile_stored(2, tile + 16 * kAmxSide, stride);
    _tile_stored(3, tile + 16 * kAmxSide + 16, stride);
}

namespace {

constexpr long kStep = 512;

// C = A B in two rounds over all threads: first A is packed, once and for all, then each thread
// takes some columns, packs their panels of B and runs through all of A. (On AMX packing is what
// takes the time, so it is never done twice.)
void multiply_in_rounds(long rows, long columns, long depth, const StridedPack<float>& a,
                        const StridedPack<float>& b, const AnyFinish& finish) {
    const long tiles = (rows + kAmxSide - 1) / kAmxSide;
    const long height = (rows + tiles - 1) / tiles;
    const auto [steps, step] = Steps(depth, kStep, kAmxTerms);
    const long panel = kAmxSide * step / 2;
    const Temporary<Pair> panels_a(tiles * steps * panel + kLanes<float>);
    const auto terms_of = [&](long s) { return std::clamp(depth - s * step, 0L, step); };
    parallel_for(tiles, 1, [&](long begin, long end) {
        for (long t = begin; t < end; t++)
            for (long s = 0; s < steps; s++)
                pack_rows(panels_a.data() + (t * steps + s) * panel, a, t * height,
                          std::min(height, rows - t * height), s * step, terms_of(s));
    });
    const long chunk = columns * rows < 64 * 64 ? columns : 1;
    parallel_for((columns + kAmxSide - 1) / kAmxSide, chunk, [&](long begin, long end) {
        Pair* panel_b = scratch<Pair>(Scratch::kPanelB, kAmxSide * step / 2);
        float* sums =
            scratch<float>(Scratch::kSums, (steps == 1 ? 1 : tiles) * kAmxSide * kAmxSide);
        const AmxTiles registers;
        for (long q = begin; q < end; q++) {
            const int lanes = static_cast<int>(std::min<long>(kAmxSide, columns - q * kAmxSide));
            for (long s = 0; s < steps; s++) {
                const long padded = (terms_of(s) + kAmxTerms - 1) / kAmxTerms * kAmxTerms;
                pack_pairs(panel_b, kAmxSide, b, q * kAmxSide, lanes, s * step, terms_of(s));
                std::fill(panel_b + (terms_of(s) + 1) / 2 * kAmxSide,
                          panel_b + padded / 2 * kAmxSide, Pair{});
                for (long t = 0; t < tiles; t++) {
                    float* tile = steps == 1 ? sums : sums + t * kAmxSide * kAmxSide;
                    multiply_square(padded, panels_a.data() + (t * steps + s) * panel, panel_b,
                                    tile, s > 0);
                    if (s == steps - 1)
                        finish(t * height, static_cast<int>(std::min(height, rows - t * height)),
                               q * kAmxSide, lanes, tile, kAmxSide);
                }
            }
        }
    });
}

}  // namespace

void multiply_amx(long rows, long columns, long depth, const StridedPack<float>& a,
                  const StridedPack<float>& b, const AnyFinish& finish) {
    if (rows > 0 && columns > 0) multiply_in_rounds(rows, columns, depth, a, b, finish);
}

__attribute__((target("amx-tile,amx-bf16"))) double amx_multiply_adds(long rounds) {
    const AmxTiles tiles;
    _tile_zero(4);
    _tile_zero(6);
    for (long r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 6);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 6);
    }
    return static_cast<double>(rounds) * 4 * 2 * 16 * 16 * kAmxTerms;
}

#else

bool amx_granted() { return false; }
double amx_multiply_adds(long) { return 0; }

#endif

}  // namespace handgrad
