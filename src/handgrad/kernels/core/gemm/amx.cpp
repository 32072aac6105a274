#include "core/gemm/amx.h"

#if defined(__AVX512F__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
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
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
}

// Constructors and destructors cannot be compiled for another target.
__attribute__((target("amx-tile"))) void load_configuration(const void* config) {
    see_memory(config);
    _tile_loadconfig(config);
}
__attribute__((target("amx-tile"))) void store_configuration(void* config) {
    _tile_storeconfig(config);
    see_memory(config);
}
__attribute__((target("amx-tile"))) void release() { _tile_release(); }

}  // namespace

bool amx_granted() { return amx_present() && handed_out(); }

AmxTiles::AmxTiles(int rows, int elements) {
    store_configuration(before_);
    struct alignas(64) {
        std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
        std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        std::uint8_t rows[16] = {};
    } config;
    std::fill_n(config.rows, 6, static_cast<std::uint8_t>(rows));
    std::fill_n(config.rows + 6, 2, static_cast<std::uint8_t>(elements));
    std::fill_n(config.row_bytes + 4, 2, static_cast<std::uint16_t>(4 * elements));
    load_configuration(&config);
}

AmxTiles::~AmxTiles() {
    // A palette of 0 says that the tiles were not in use.
    if (before_[0] == 0)
        release();
    else
        load_configuration(before_);
}

namespace {

// Two or four independent products of 16 elements of k at a time: one takes 52 cycles, and after 16
// the next can begin.
template <int Down, int Across>
__attribute__((target("amx-tile,amx-bf16"))) void multiply_tiles(long elements, const AmxRows& a,
                                                                 const Bf16x2* b, long b_row,
                                                                 float* c, long c_row,
                                                                 bool accumulate,
                                                                 const AmxTraffic& traffic) {
    const long a_bytes = 4 * a.row, b_bytes = 4 * b_row, c_bytes = 4 * c_row;
    see_memory(c);
    if (accumulate) {
        _tile_loadd(0, c, c_bytes);
        if constexpr (Across == 2) _tile_loadd(1, c + 16, c_bytes);
        if constexpr (Down == 2) _tile_loadd(2, c + 16 * c_row, c_bytes);
        if constexpr (Down * Across == 4) _tile_loadd(3, c + 16 * c_row + 16, c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    const long stored_rows = (kAmxSide * kAmxElements + elements - 1) / std::max(elements, 1L);
    const char* next = reinterpret_cast<const char*>(traffic.next);
    const Bf16x2* rows = a.data;
    for (long p = 0; p < elements; p += kAmxElements, rows += a.chunk, b += kAmxElements * b_row) {
        _tile_loadd(4, rows, a_bytes);
        _tile_loadd(6, b, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (Across == 2) {
            _tile_loadd(7, b + 16, b_bytes);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (Down == 2) {
            _tile_loadd(5, rows + 16 * a.row, a_bytes);
            _tile_dpbf16ps(2, 5, 6);
        }
        if constexpr (Down * Across == 4) _tile_dpbf16ps(3, 5, 7);
        for (long i = 0; i < traffic.lines; i++, next += 64) __builtin_prefetch(next, 0, 2);
        if (traffic.deferred != nullptr)
            for (long i = 0; i < stored_rows; i++) traffic.deferred->store_row();
    }
    if (traffic.deferred != nullptr) traffic.deferred->store_all();
    _tile_stored(0, c, c_bytes);
    if constexpr (Across == 2) _tile_stored(1, c + 16, c_bytes);
    if constexpr (Down == 2) _tile_stored(2, c + 16 * c_row, c_bytes);
    if constexpr (Down * Across == 4) _tile_stored(3, c + 16 * c_row + 16, c_bytes);
}

}  // namespace

void amx_micro_kernel(int rows, int width, long elements, const AmxRows& a, const Bf16x2* b,
                      long b_row, float* c, long c_row, bool accumulate,
                      const AmxTraffic& traffic) {
    if (rows > 16 && width > 16)
        multiply_tiles<2, 2>(elements, a, b, b_row, c, c_row, accumulate, traffic);
    else if (rows > 16)
        multiply_tiles<2, 1>(elements, a, b, b_row, c, c_row, accumulate, traffic);
    else if (width > 16)
        multiply_tiles<1, 2>(elements, a, b, b_row, c, c_row, accumulate, traffic);
    else
        multiply_tiles<1, 1>(elements, a, b, b_row, c, c_row, accumulate, traffic);
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
    return static_cast<double>(rounds) * 4 * 2 * 16 * 16 * kAmxSide;
}

#else

bool amx_granted() { return false; }
double amx_multiply_adds(long) { return 0; }

#endif

}  // namespace handgrad
