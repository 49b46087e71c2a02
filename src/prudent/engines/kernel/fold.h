// Weighted sums of the cells of each group.
#pragma once

#include <cstdint>

// Σ weight · n over the cells of each group, which follow each other, for several tables of weights; the weight of a
// cell is at (code >> 16) · stride + (code & 65535). Sums start at 0; false where sizes or codes go too far.
inline bool fold_cells(const uint32_t *sizes, int64_t groups, const uint32_t *code, const double *n, int64_t cells,
                       uint64_t stride, const double *const *tables, int64_t number, uint64_t length,
                       double *const *sums) {
    int64_t cell = 0;
    for (int64_t group = 0; group < groups; group++) {
        if (sizes[group] > cells - cell) return false;
        for (const int64_t end = cell + sizes[group]; cell < end; cell++) {
            const uint64_t at = (code[cell] >> 16) * stride + (code[cell] & 65535);
            if (at >= length) return false;
            for (int64_t t = 0; t < number; t++) sums[t][group] += tables[t][at] * n[cell];
        }
    }
    return cell == cells;
}
