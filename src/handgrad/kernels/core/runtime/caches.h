// Caches of the CPU that runs, and the block sizes that follow from them.
//
// The product takes its operands in BLIS's five loops, with the roles of A and B exchanged: a
// micro-panel of A, MR × KC, stays in the first-level cache while the micro-panels of B of an NC
// block pass by it from the second-level cache, where all of them stay.
//   KC  as many terms as let a micro-panel of A fill the first-level cache, or with 16 registers
//       two packed ones of A and one of B,
//   NC  as many columns as let the micro-panels of B take half of the second-level cache,
//   MC  as many rows as let their micro-panels of A fill it.
// Sums run through k in order whatever KC is, so that no size changes a bit of a result.
// Source: Low et al., Analytical modeling is enough for high-performance BLIS
// (2016), section 4.
#pragma once

#include <algorithm>

namespace handgrad {

// One level, as large as one thread's part of it.
struct Cache {
    long bytes, ways;
};

struct Caches {
    Cache l1{32 << 10, 8}, l2{512 << 10, 8};
    long line = 64;
};

// Those of this process; handgrad.dispatch.cpu_caches sets them when it is imported.
const Caches& caches();

// The largest KC for panel elements of so many bytes, MR of them for each term.
inline long largest_kc(long mr, long bytes) {
    return std::max(caches().l1.bytes / (mr * bytes) / 8 * 8, 64L);
}

// The largest KC of a packed A with 16 registers: the first-level cache has room for the
// micro-panel of A that is multiplied, the next one, and the one of B that passes by.
inline long packed_kc(long mr, long nr, long bytes) {
    return std::max(caches().l1.bytes / ((2 * mr + nr) * bytes) / 8 * 8, 64L);
}

// Bytes of the micro-panels of B in an NC block, and of A in an MC block.
inline long nc_bytes() { return caches().l2.bytes / 2; }
inline long mc_bytes() { return caches().l2.bytes; }

// True if so many rows, this far apart, have more lines in one set of the first-level cache than it
// has ways. Then every line is fetched anew for each of its values, and the rows should be packed.
inline bool rows_collide(int rows, long bytes_apart) {
    const Caches& known = caches();
    const long sets = std::max(known.l1.bytes / (known.l1.ways * known.line), 1L);
    // Rows i and j are in one set if (i - j) · bytes_apart is a multiple of all sets' lines.
    long period = 1;
    while (period < rows && period * bytes_apart % (sets * known.line) != 0) period++;
    return (rows + period - 1) / period > known.l1.ways;
}

}  // namespace handgrad
