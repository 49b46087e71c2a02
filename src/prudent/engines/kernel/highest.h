// The rows of each group that are highest by some keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

// Groups are consecutive rows, from each start up to the next; ties go to the next key, then to the first row.
inline void find_highest(const int64_t *starts, int64_t groups, const double *const *keys, int64_t number,
                         const uint8_t *eligible, int64_t length, int64_t *rows, int64_t *sizes) {
    auto before = [&](int64_t one, int64_t other) {
        for (int64_t k = 0; k < number; k++)
            if (keys[k][one] != keys[k][other]) return keys[k][one] > keys[k][other];
        return one < other;
    };
    std::vector<int64_t> some;
    for (int64_t group = 0; group < groups; group++) {
        some.clear();
        for (int64_t row = starts[group]; row < starts[group + 1]; row++)
            if (eligible[row]) some.push_back(row);
        const auto size = std::min(static_cast<int64_t>(some.size()), length);
        std::partial_sort(some.begin(), some.begin() + size, some.end(), before);
        rows = std::copy(some.begin(), some.begin() + size, rows);
        sizes[group] = size;
    }
}
