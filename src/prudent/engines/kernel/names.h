// Names of contexts and items: texts, or integers of 64 bits. They are compared by their bytes, and hashed only to find
// them, never to tell them apart.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "arrow.h"

namespace {

inline uint64_t mix(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9E3779B97F4A7C15u;
    value ^= value >> 29;
    value *= 0xBF58476D1CE4E5B9u;
    return value ^ value >> 32;
}

constexpr int64_t LINE = 64;  // bytes that memory gives at a time, or fewer

struct Text {
    const char *data;
    uint64_t size;

    static Text at(const Column &column, int64_t row) {
        Span span = column.span(row);
        return {column.bytes + span.first, static_cast<uint64_t>(span.size)};
    }
    static Text at(const char *bytes, const int64_t *ends, int64_t row) {
        int64_t first = row ? ends[row - 1] : 0;
        return {bytes ? bytes + first : "", static_cast<uint64_t>(ends[row] - first)};  // names may all be empty
    }
    bool operator==(const Text &other) const {
        if (size != other.size || last() != other.last()) return false;
        for (uint64_t at = 0; at + 8 < size; at += 8)
            if (load<uint64_t>(data + at, 0) != load<uint64_t>(other.data + at, 0)) return false;
        return true;
    }
    bool operator<(const Text &other) const {
        int order = std::memcmp(data, other.data, std::min(size, other.size));
        return order ? order < 0 : size < other.size;
    }
    uint64_t hash() const {
        uint64_t all = size;
        for (uint64_t at = 0; at + 8 < size; at += 8) all = mix(all ^ load<uint64_t>(data + at, 0));
        return mix(all ^ last());
    }
    bool has_nul() const { return size && std::memchr(data, 0, size); }
    void append(std::vector<char> &bytes, std::vector<int64_t> &ends) const {
        bytes.insert(bytes.end(), data, data + size);
        ends.push_back(static_cast<int64_t>(bytes.size()));
    }
    // Ask early for names that are needed soon: for where they are, and some time after that for what is there.
    static void prefetch_places(const Column &column, int64_t first, int64_t size) {
        const char *from = static_cast<const char *>(column.values) + (column.first + first) * (column.wide ? 8 : 4);
        for (const char *at = from; at <= from + size * (column.wide ? 8 : 4); at += LINE) __builtin_prefetch(at);
    }
    static void prefetch_names(const Column &column, int64_t first, int64_t size) {
        const char *end = column.bytes + column.offset(first + size);
        for (const char *at = column.bytes + column.offset(first); at < end; at += LINE) __builtin_prefetch(at);
    }

  private:
    uint64_t last() const {  // its last eight bytes, or all of them
        if (size >= 8) return load<uint64_t>(data + size - 8, 0);
        if (size >= 4) return uint64_t{load<uint32_t>(data, 0)} << 32 | load<uint32_t>(data + size - 4, 0);
        if (!size) return 0;
        auto byte = reinterpret_cast<const uint8_t *>(data);
        return uint64_t{byte[0]} << 16 | uint64_t{byte[size / 2]} << 8 | byte[size - 1];
    }
};

template <class Integer> struct Whole {
    Integer value;

    static Whole at(const Column &column, int64_t row) { return {load<Integer>(column.values, column.first + row)}; }
    static Whole at(const char *bytes, const int64_t *, int64_t row) { return {load<Integer>(bytes, row)}; }
    bool operator==(const Whole &other) const { return value == other.value; }
    bool operator<(const Whole &other) const { return value < other.value; }
    uint64_t hash() const { return mix(static_cast<uint64_t>(value)); }
    bool has_nul() const { return false; }
    void append(std::vector<char> &bytes, std::vector<int64_t> &) const {
        auto raw = reinterpret_cast<const char *>(&value);
        bytes.insert(bytes.end(), raw, raw + sizeof value);
    }
    static void prefetch_places(const Column &column, int64_t first, int64_t size) {
        const char *from = static_cast<const char *>(column.values) + (column.first + first) * int64_t{sizeof(Integer)};
        for (const char *at = from; at < from + size * int64_t{sizeof(Integer)}; at += LINE) __builtin_prefetch(at);
    }
    static void prefetch_names(const Column &, int64_t, int64_t) {}
};

// Numbers names in the order in which they come; a table of slots with at least twice as many places as names.
template <class Name> class Numbers {
  public:
    std::vector<Name> names;

    void clear() {
        for (auto &name : names) {  // cheaper than the whole table where it once was large
            uint64_t slot = name.hash();
            while (slots[slot & mask]) slots[slot++ & mask] = 0;
        }
        names.clear();
    }
    uint32_t of(const Name &name) {
        if (2 * (names.size() + 1) > slots.size()) grow();
        for (uint64_t slot = name.hash();; slot++) {
            uint32_t &number = slots[slot & mask];
            if (!number) {
                names.push_back(name);
                number = static_cast<uint32_t>(names.size());
                return number - 1;
            }
            if (names[number - 1] == name) return number - 1;
        }
    }

  private:
    std::vector<uint32_t> slots;  // one more than the number of the name, or 0
    uint64_t mask = 0;

    void grow() {
        if (names.size() >= UINT32_MAX / 2) throw std::runtime_error("more than 2,147,483,647 names at a time");
        slots.assign(std::max<size_t>(64, 4 * slots.size()), 0);
        mask = slots.size() - 1;
        for (size_t i = 0; i < names.size(); i++) {
            uint64_t slot = names[i].hash();
            while (slots[slot & mask]) slot++;
            slots[slot & mask] = static_cast<uint32_t>(i + 1);
        }
    }
};

}  // namespace
