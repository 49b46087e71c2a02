// Keys of 64 bits for names and for what is made of them, and sums by key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "names.h"

namespace {

using View8 = std::basic_string_view<char>;

// Of a text, by eight bytes at a time, the first of them highest, with zeros below the end. 0 is the key of nothing.
inline uint64_t key_of(View8 text) {
    uint64_t key = mix(text.size());
    size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        uint64_t word = 0;
        for (size_t byte = 0; byte < 8; byte++) word = word << 8 | static_cast<uint8_t>(text[at + byte]);
        key = mix(key ^ word);
    }
    if (at < text.size()) {
        uint64_t word = 0;
        for (size_t byte = at; byte < text.size(); byte++) word = word << 8 | static_cast<uint8_t>(text[byte]);
        key = mix(key ^ word << 8 * (at + 8 - text.size()));
    }
    return key ? key : 1;
}

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// The host that a text begins with: at least two labels, up to its end or one of : / ? #.
inline View8 host_at(View8 text) {
    size_t labels = 0, at = 0;
    while (true) {
        const size_t first = at;
        while (at < text.size() && (is_word(text[at]) || text[at] == '-')) at++;
        if (at == first) return {};
        labels++;
        if (at == text.size() || text[at] != '.') break;
        at++;
    }
    const bool ends = at == text.size() || View8(":/?#").find(text[at]) != View8::npos;
    return labels > 1 && ends ? text.substr(0, at) : View8();
}

inline View8 host_without_www(View8 text) {
    const bool www = text.size() > 3 && lower(text[0]) == 'w' && lower(text[1]) == 'w' && lower(text[2]) == 'w' && text[3] == '.';
    const View8 rest = www ? host_at(text.substr(4)) : View8();
    return rest.empty() ? host_at(text) : rest;
}

// The host of a URL, with or without a scheme and a user; empty where there is none.
inline View8 host_of(View8 url) {
    size_t scheme = 0;
    if (!url.empty() && is_letter(url[0])) {
        size_t at = 1;
        while (at < url.size() && (is_word(url[at]) || View8("+.-").find(url[at]) != View8::npos)) at++;
        if (at < url.size() && url[at] == ':') scheme = at + 1;
    }
    if (url.substr(scheme, 2) == "//") {
        const View8 rest = url.substr(scheme + 2);
        const size_t user = rest.find_first_of("@/?#");
        View8 host;
        if (user != View8::npos && rest[user] == '@') host = host_without_www(rest.substr(user + 1));
        if (host.empty()) host = host_without_www(rest);
        if (!host.empty()) return host;
    }
    return host_without_www(url);
}

// The words of an ASCII text in lower case, sorted; false for other texts.
inline bool words_of(View8 text, std::vector<View8> &words, std::string &letters, std::string &joined) {
    letters.clear();
    for (char c : text) {
        if (static_cast<uint8_t>(c) > 127) return false;
        letters.push_back(is_word(c) ? lower(c) : ' ');
    }
    words.clear();
    for (size_t at = 0; at < letters.size();) {
        const size_t end = std::min(letters.find(' ', at), letters.size());
        if (end > at) words.push_back(View8(letters).substr(at, end - at));
        at = end + 1;
    }
    std::sort(words.begin(), words.end());
    joined.clear();
    for (const View8 word : words) {
        if (!joined.empty()) joined.push_back(' ');
        joined.append(word);
    }
    return true;
}

// The key of each name, of its host or of its words; 0 where there is none, and `known` is false where that is not told.
inline bool find_keys(char what, const char *bytes, int64_t size, const int64_t *ends, int64_t names, uint64_t *keys,
                      uint8_t *known) {
    std::vector<View8> words;
    std::string letters, joined;
    for (int64_t i = 0, first = 0; i < names; first = ends[i], i++) {
        if (ends[i] < first || ends[i] > size) return false;
        View8 text(bytes + first, static_cast<size_t>(ends[i] - first));
        known[i] = true;
        if (what == 'h') {
            text = host_of(text);
            letters.resize(text.size());
            std::transform(text.begin(), text.end(), letters.begin(), lower);
            text = letters;
        } else if (what == 'w') {
            known[i] = words_of(text, words, letters, joined);
            text = known[i] ? View8(joined) : View8();
        }
        keys[i] = what != 'n' && text.empty() ? 0 : key_of(text);
    }
    return true;
}

// Sums of some columns over the rows of each key but 0, in the order in which keys come; how many keys there are.
inline int64_t add_by_key(const uint64_t *keys, int64_t rows, const uint64_t *const *columns, int64_t width,
                          uint64_t *distinct, uint64_t *const *sums) {
    std::vector<uint32_t> slots(1024);  // one more than the number of the key, or 0
    int64_t number = 0;
    auto slot_of = [&](uint64_t key) {
        uint64_t slot = mix(key) & (slots.size() - 1);
        while (slots[slot] && distinct[slots[slot] - 1] != key) slot = (slot + 1) & (slots.size() - 1);
        return slot;
    };
    for (int64_t row = 0; row < rows; row++) {
        if (!keys[row]) continue;
        if (static_cast<size_t>(2 * number + 2) > slots.size()) {
            if (number >= INT32_MAX) throw std::bad_alloc();
            slots.assign(4 * slots.size(), 0);
            for (int64_t i = 0; i < number; i++) slots[slot_of(distinct[i])] = static_cast<uint32_t>(i + 1);
        }
        uint32_t &slot = slots[slot_of(keys[row])];
        if (!slot) {
            distinct[number] = keys[row];
            for (int64_t c = 0; c < width; c++) sums[c][number] = 0;
            slot = static_cast<uint32_t>(++number);
        }
        for (int64_t c = 0; c < width; c++) sums[c][slot - 1] += columns[c][row];
    }
    return number;
}

// Of each row, the sums of some columns over the rows of the same key in its group of consecutive rows.
inline void add_within(const int64_t *starts, int64_t groups, const int64_t *keys, const uint64_t *const *columns,
                       int64_t width, uint64_t *const *sums) {
    std::vector<std::pair<int64_t, int64_t>> order;
    for (int64_t group = 0; group < groups; group++) {
        order.clear();
        for (int64_t row = starts[group]; row < starts[group + 1]; row++) order.emplace_back(keys[row], row);
        std::sort(order.begin(), order.end());
        for (size_t first = 0, last = 0; first < order.size(); first = last) {
            while (last < order.size() && order[last].first == order[first].first) last++;
            for (int64_t c = 0; c < width; c++) {
                uint64_t sum = 0;
                for (size_t i = first; i < last; i++) sum += columns[c][order[i].second];
                for (size_t i = first; i < last; i++) sums[c][order[i].second] = sum;
            }
        }
    }
}

// The place of each wanted key among ascending ones, or −1. Keys are spread evenly: their highest bits nearly tell it.
inline void find_places(const int64_t *known, int64_t number, const int64_t *wanted, int64_t rows, int64_t *places) {
    int bits = 0;
    while ((int64_t{4} << bits) <= number) bits++;
    auto bucket = [&](int64_t key) { return bits ? (static_cast<uint64_t>(key) ^ uint64_t{1} << 63) >> (64 - bits) : 0; };
    std::vector<int64_t> starts((size_t{1} << bits) + 1);
    for (int64_t i = 0; i < number; i++) starts[bucket(known[i]) + 1] = i + 1;
    for (size_t b = 1; b < starts.size(); b++) starts[b] = std::max(starts[b], starts[b - 1]);
    for (int64_t row = 0; row < rows; row++) {
        const uint64_t b = bucket(wanted[row]);
        const int64_t *end = known + starts[b + 1], *at = std::lower_bound(known + starts[b], end, wanted[row]);
        places[row] = at != end && *at == wanted[row] ? at - known : -1;
    }
}

}  // namespace
