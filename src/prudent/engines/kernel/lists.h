// Whole lists: sorted, and equal ones written once.
#pragma once

#include "counter.h"

struct WholeLists {
    std::vector<uint32_t> context, size, items;
    std::vector<uint8_t> clicks;
    std::vector<uint64_t> n;
};

namespace {

struct Shown {  // a list that was shown n times
    uint32_t context, size;
    uint64_t key;  // of its first two items
    const uint32_t *items;
    const uint8_t *clicks;
    uint64_t n;

    Shown(uint32_t context, uint32_t size, const uint32_t *items, const uint8_t *clicks, uint64_t n)
        : context(context), size(size), items(items), clicks(clicks), n(n) {
        key = uint64_t{items[0]} << 32 | (size > 1 ? items[1] + 1 : 0);
    }

    // Below 0 where it comes before another one: by context, then by items, and where these are the same by clicks.
    int compare(const Shown &other) const {
        if (context != other.context) return context < other.context ? -1 : 1;
        if (key != other.key) return key < other.key ? -1 : 1;
        for (uint32_t k = 2; k < std::min(size, other.size); k++)
            if (items[k] != other.items[k]) return items[k] < other.items[k] ? -1 : 1;
        if (size != other.size) return size < other.size ? -1 : 1;
        return std::memcmp(clicks, other.clicks, size);
    }
};

// Write lists in their order; equal ones add up.
inline void write_lists(std::vector<Shown> &lists, WholeLists &whole) {
    std::sort(lists.begin(), lists.end(), [](const Shown &a, const Shown &b) { return a.compare(b) < 0; });
    for (size_t i = 0; i < lists.size(); i++) {
        const Shown &list = lists[i];
        if (i && !list.compare(lists[i - 1])) {
            whole.n.back() += list.n;
            continue;
        }
        whole.context.push_back(list.context);
        whole.size.push_back(list.size);
        whole.items.insert(whole.items.end(), list.items, list.items + list.size);
        whole.clicks.insert(whole.clicks.end(), list.clicks, list.clicks + list.size);
        whole.n.push_back(list.n);
    }
}

// Those of the lists that were counted whose context is chosen; one context at a time stays in the cache.
inline void find_lists(const Accepted &accepted, const uint8_t *chosen, WholeLists &whole) {
    std::vector<Shown> lists;
    const uint32_t *size = accepted.size.data(), *items = accepted.items.data();
    const uint8_t *clicks = accepted.clicks.data();
    for (uint32_t context = 0; context < accepted.lists.size(); context++) {
        lists.clear();
        for (int64_t i = 0; i < accepted.lists[context]; i++) {
            if (chosen[context]) lists.emplace_back(context, *size, items, clicks, 1);
            items += *size;
            clicks += *size++;
        }
        write_lists(lists, whole);
    }
}

}  // namespace
