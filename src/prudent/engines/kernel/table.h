// Tables of smooth functions of two numbers, read between their nodes.
#pragma once

#include <cmath>
#include <cstdint>

constexpr int NODES = 8;  // in each direction, of a polynomial of degree 7

// Lagrange's weights of the nodes −3 … 4 at a place from 0 to 1. No sum or product may change its order: the twin gives
// the same bytes.
inline void weigh(double at, double *weight) {
    static const double scale[NODES] = {-1.0 / 5040, 1.0 / 720, -1.0 / 240, 1.0 / 144, -1.0 / 144, 1.0 / 240, -1.0 / 720, 1.0 / 5040};
    double below[NODES], above = 1;
    below[0] = 1;
    for (int k = 1; k < NODES; k++) below[k] = below[k - 1] * (at - (k - 4));
    for (int k = NODES - 1; k >= 0; k--) {
        weight[k] = below[k] * above * scale[k];
        above *= at - (k - 3);
    }
}

// The values of several tables of one shape at some places, in units of their nodes and at least 3 and 4 nodes inside.
inline void read_tables(const double *const *tables, int64_t number, int64_t columns, const double *row,
                        const double *column, int64_t places, double *const *values) {
    for (int64_t i = 0; i < places; i++) {
        const double r = std::floor(row[i]), c = std::floor(column[i]);
        double by_row[NODES], by_column[NODES];
        weigh(row[i] - r, by_row);
        weigh(column[i] - c, by_column);
        const int64_t first = (static_cast<int64_t>(r) - 3) * columns + static_cast<int64_t>(c) - 3;
        for (int64_t t = 0; t < number; t++) {
            double sum = 0;
            for (int k = 0; k < NODES; k++) {
                const double *from = tables[t] + first + k * columns;
                double inner = 0;
                for (int l = 0; l < NODES; l++) inner += by_column[l] * from[l];
                sum += by_row[k] * inner;
            }
            values[t][i] = sum;
        }
    }
}
