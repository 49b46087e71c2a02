// Batches of lists, read where they lie: Arrow's C data interface, and the columns of a batch of
// (context, items, clicks, fault, copies).
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

// --- as Arrow's specification prints them -----------------------------------------------------------------------------

struct ArrowSchema;

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    ArrowArray **children, *dictionary;
    void (*release)(ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *);
    int (*get_next)(ArrowArrayStream *, ArrowArray *);
    const char *(*get_last_error)(ArrowArrayStream *);
    void (*release)(ArrowArrayStream *);
    void *private_data;
};

namespace {

// --- columns ------------------------------------------------------------------------------------------------------------

template <class Value> Value load(const void *values, int64_t at) {  // from anywhere: buffers need not be aligned
    Value value;
    std::memcpy(&value, static_cast<const char *>(values) + at * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
}

struct Span {  // of a text or a list: where its bytes or elements are
    int64_t first, size;
};

struct Column {
    const uint8_t *bits;  // which rows are not null, or nullptr where none is
    const void *values;   // numbers, or the offsets of texts and lists
    const char *bytes;    // of texts
    int64_t first, length;
    bool wide = false;  // offsets of 64 bits

    bool valid(int64_t row) const { return !bits || (bits[(first + row) >> 3] >> ((first + row) & 7) & 1); }

    int64_t offset(int64_t row) const {
        return wide ? load<int64_t>(values, first + row) : load<int32_t>(values, first + row);
    }

    Span span(int64_t row) const {
        int64_t from = offset(row);
        return {from, offset(row + 1) - from};
    }

    int64_t number(char format, int64_t row) const {
        int64_t at = first + row;
        switch (format) {
        case 'c': return load<int8_t>(values, at);
        case 'C': return load<uint8_t>(values, at);
        case 's': return load<int16_t>(values, at);
        case 'S': return load<uint16_t>(values, at);
        case 'i': return load<int32_t>(values, at);
        case 'I': return load<uint32_t>(values, at);
        case 'b': return load<uint8_t>(values, at >> 3) >> (at & 7) & 1;
        default: return load<int64_t>(values, at);  // l, and L: what is not 0 or 1 stays so
        }
    }
};

[[noreturn]] inline void malformed() { throw std::runtime_error("malformed Arrow data"); }

inline Column column(const ArrowArray *array, int64_t skip, int64_t buffers) {
    if (!array || array->n_buffers != buffers || array->dictionary || array->length < 0 || array->offset < 0) malformed();
    if (!array->buffers || (array->length && !array->buffers[1])) malformed();
    const void *bits = array->null_count ? array->buffers[0] : nullptr;
    if (skip > array->length) malformed();
    return {static_cast<const uint8_t *>(bits), array->buffers[1], "", array->offset + skip, array->length - skip};
}

// A column of texts or lists, whose offsets must never fall, nor go past the end of what they point to.
inline Column with_offsets(Column column, bool wide, int64_t end) {
    column.wide = wide;
    if (!column.length) return column;
    bool falls = column.offset(0) < 0;
    for (int64_t row = 0; row < column.length; row++) falls |= column.offset(row + 1) < column.offset(row);
    if (falls || column.offset(column.length) > end) malformed();
    return column;
}

inline Column names(const ArrowArray *array, int64_t skip, char format, bool wide) {
    if (format != 'u') return column(array, skip, 2);
    Column found = with_offsets(column(array, skip, 3), wide, INT64_MAX);
    if (array->buffers[2]) found.bytes = static_cast<const char *>(array->buffers[2]);
    else if (found.length && found.offset(found.length)) malformed();
    return found;
}

inline const ArrowArray *child(const ArrowArray *array) {
    if (!array || array->n_children != 1 || !array->children || !array->children[0]) malformed();
    return array->children[0];
}

// --- batches ------------------------------------------------------------------------------------------------------------

struct Types {
    char context, item, click;                                   // Arrow's letters; a text is u
    bool wide_context, wide_items, wide_item, wide_clicks;  // whether offsets have 64 bits: of texts, and of lists
};

struct Batch {
    int64_t length;
    Column context, items, item, clicks, click, fault, copies;

    Batch(const ArrowArray &batch, const Types &types) : length(batch.length) {
        if (batch.n_children != 5 || !batch.children || length < 0 || batch.offset < 0) malformed();
        if (batch.null_count && batch.n_buffers && batch.buffers && batch.buffers[0]) malformed();
        int64_t skip = batch.offset;
        ArrowArray **columns = batch.children;
        context = names(columns[0], skip, types.context, types.wide_context);
        item = names(child(columns[1]), 0, types.item, types.wide_item);
        items = with_offsets(column(columns[1], skip, 2), types.wide_items, item.length);
        click = column(child(columns[2]), 0, 2);
        clicks = with_offsets(column(columns[2], skip, 2), types.wide_clicks, click.length);
        fault = column(columns[3], skip, 2);
        copies = column(columns[4], skip, 2);
        for (const Column *one : {&context, &items, &clicks, &fault, &copies})
            if (one->length < length) malformed();
    }

    int64_t bytes() const { return 64 * length + 32 * item.length; }  // what it takes to count it, about
};

class Batches {
  public:
    std::vector<Batch> all;

    void add(const ArrowArray &batch, const Types &types) {
        try {
            owned.push_back(batch);
        } catch (...) {
            batch.release(const_cast<ArrowArray *>(&batch));
            throw;
        }
        all.emplace_back(batch, types);
    }
    void clear() {
        for (auto &batch : owned) batch.release(&batch);
        owned.clear();
        all.clear();
    }
    Batches() = default;
    Batches(const Batches &) = delete;
    Batches &operator=(const Batches &) = delete;
    ~Batches() { clear(); }

  private:
    std::vector<ArrowArray> owned;
};

}  // namespace
