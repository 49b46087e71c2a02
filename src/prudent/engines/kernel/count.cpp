// The counting kernel: Arrow batches of (context, items, clicks, fault, copies) -> one sorted run of contexts, pairs and
// cells, and whole lists where they are asked for. The result depends on the lists alone: not on their order, nor on how
// they were cut into batches.
//
// `numpy_twin.py` does the same with NumPy; the tests hold the two together to the byte.

#include <new>
#include <string>

#include "fold.h"
#include "highest.h"
#include "keys.h"
#include "lists.h"
#include "merger.h"
#include "table.h"
#include "tails.h"

namespace {

using Signed = Whole<int64_t>;
using Unsigned = Whole<uint64_t>;

// Call `make` with the types of names that two of Arrow's letters stand for.
template <class Context, class Make> auto with_item(char item, Make make) {
    return item == 'u' ? make(Context{}, Text{}) : item == 'l' ? make(Context{}, Signed{}) : make(Context{}, Unsigned{});
}
template <class Make> auto with_names(char context, char item, Make make) {
    return context == 'u'   ? with_item<Text>(item, make)
           : context == 'l' ? with_item<Signed>(item, make)
                            : with_item<Unsigned>(item, make);
}

constexpr int64_t MOST_LISTS = int64_t{1} << 31;  // at a time: places have room for them

// Take batches until they fill the budget or are more than enough, and say whether the stream has ended.
bool pull(ArrowArrayStream *stream, int64_t budget, const Types &types, Batches &batches) {
    for (int64_t bytes = 0, lists = 0; bytes < budget && lists < MOST_LISTS;) {
        ArrowArray batch{};
        if (stream->get_next(stream, &batch)) {
            const char *error = stream->get_last_error(stream);
            throw std::runtime_error(error ? error : "the stream failed");
        }
        if (!batch.release) return true;
        batches.add(batch, types);
        bytes += batches.all.back().bytes();
        lists += batches.all.back().length;
        if (batches.all.back().length >= MOST_LISTS) malformed();
    }
    return false;
}

}  // namespace

struct Result {
    Run run;
    WholeLists whole;
    Accepted accepted;
    std::vector<uint64_t> tally;
    bool exhausted = false;
    std::string error;

    template <class Work> void attempt(Work work) {
        try {
            work();
        } catch (const std::bad_alloc &) {
            error = "out of memory";
        } catch (const std::exception &other) {
            error = other.what();
        }
    }
};

#define EXPORT __attribute__((visibility("default")))

extern "C" {
EXPORT const char *prudent_digest() { return PRUDENT_DIGEST; }  // of the source, to know a library that is older than it

// Count what a stream still has, or as much as fits into a budget of bytes. Free the result with `prudent_free`.
EXPORT Result *prudent_count(ArrowArrayStream *stream, int64_t budget, const Types *types, int64_t max_positions,
                             bool text_files) {
    auto *result = new (std::nothrow) Result;
    if (!result) return nullptr;
    result->attempt([&] {
        Batches batches;
        result->exhausted = pull(stream, budget, *types, batches);
        with_names(types->context, types->item, [&](auto context, auto item) {
            Counter<decltype(context), decltype(item)> counter(batches.all, *types, max_positions, text_files);
            counter.count(result->run, result->accepted);
            result->tally = counter.tally;
        });
    });
    return result;
}

// Find the whole lists of chosen contexts of the run, or of none for nullptr, and forget the others.
EXPORT void prudent_lists(Result *result, const uint8_t *chosen) {
    result->attempt([&] {
        if (chosen) find_lists(result->accepted, chosen, result->whole);
        result->accepted = {};
    });
}

// The same lists, sorted, and equal ones as one; no list is empty.
EXPORT Result *prudent_distinct(int64_t number, const uint32_t *context, const uint32_t *size, const uint32_t *items,
                                const uint8_t *clicks, const uint64_t *n) {
    auto *result = new (std::nothrow) Result;
    if (!result) return nullptr;
    result->attempt([&] {
        std::vector<Shown> lists;
        lists.reserve(static_cast<size_t>(number));
        for (int64_t i = 0; i < number; items += size[i], clicks += size[i], i++)
            lists.emplace_back(context[i], size[i], items, clicks, n[i]);
        write_lists(lists, result->whole);
    });
    return result;
}

// The sum of several runs, whose names have these types.
EXPORT Result *prudent_merge(const View *views, int64_t number, char context, char item) {
    auto *result = new (std::nothrow) Result;
    if (!result) return nullptr;
    result->attempt([&] {
        with_names(context, item, [&](auto one, auto other) {
            Merger<decltype(one), decltype(other)>(views, number, result->run).merge();
        });
    });
    return result;
}

// The rows of each group of consecutive rows that are highest by some keys, and how many; false where memory is short.
EXPORT bool prudent_highest(const int64_t *starts, int64_t groups, const double *const *keys, int64_t number,
                            const uint8_t *eligible, int64_t length, int64_t *rows, int64_t *sizes) {
    try {
        find_highest(starts, groups, keys, number, eligible, length, rows, sizes);
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

// Weighted sums of the cells of each group; false where sizes or codes go too far.
EXPORT bool prudent_fold(const uint32_t *sizes, int64_t groups, const uint32_t *code, const double *n, int64_t cells,
                         int64_t stride, const double *const *tables, int64_t number, int64_t length,
                         double *const *sums) {
    return fold_cells(sizes, groups, code, n, cells, static_cast<uint64_t>(stride), tables, number,
                      static_cast<uint64_t>(length), sums);
}

// The values of several tables of one shape, between their nodes.
EXPORT void prudent_read_tables(const double *const *tables, int64_t number, int64_t columns, const double *row,
                                const double *column, int64_t places, double *const *values) {
    read_tables(tables, number, columns, row, column, places, values);
}

// The keys of names ('n'), of their hosts ('h') or of their words ('w'); false for ends that go too far.
EXPORT bool prudent_keys(char what, const char *bytes, int64_t size, const int64_t *ends, int64_t names, uint64_t *keys,
                         uint8_t *known) {
    try {
        return find_keys(what, bytes, size, ends, names, keys, known);
    } catch (const std::exception &) {
        return false;
    }
}

// Sums by key, in the order in which keys come, and how many keys there are; −1 where memory is short.
EXPORT int64_t prudent_add_by_key(const uint64_t *keys, int64_t rows, const uint64_t *const *columns, int64_t width,
                                  uint64_t *distinct, uint64_t *const *sums) {
    try {
        return add_by_key(keys, rows, columns, width, distinct, sums);
    } catch (const std::exception &) {
        return -1;
    }
}

// Sums by key within groups of consecutive rows, for each row; false where memory is short.
EXPORT bool prudent_add_within(const int64_t *starts, int64_t groups, const int64_t *keys,
                               const uint64_t *const *columns, int64_t width, uint64_t *const *sums) {
    try {
        add_within(starts, groups, keys, columns, width, sums);
    } catch (const std::exception &) {
        return false;
    }
    return true;
}

// The place of each key among ascending ones, or −1; false where memory is short.
EXPORT bool prudent_find(const int64_t *known, int64_t number, const int64_t *wanted, int64_t rows, int64_t *places) {
    try {
        find_places(known, number, wanted, rows, places);
    } catch (const std::exception &) {
        return false;
    }
    return true;
}

// What users read below last clicks in every context: 0 where all came to rest, 1 where some did not, −1 where sizes do
// not fit, and −2 where memory is short.
EXPORT int prudent_settle(const uint32_t *pairs, int64_t contexts, const uint32_t *sizes, int64_t rows,
                          const uint32_t *code, const double *n, int64_t cells, const Users *users,
                          const Settled *settled) {
    try {
        return settle_contexts(pairs, contexts, sizes, rows, code, n, cells, *users, *settled);
    } catch (const std::bad_alloc &) {
        return -2;
    }
}

EXPORT void prudent_free(Result *result) { delete result; }

EXPORT const char *prudent_error(const Result *result) { return result->error.empty() ? nullptr : result->error.c_str(); }
EXPORT bool prudent_exhausted(const Result *result) { return result->exhausted; }

// A column of a result: where it begins; its size in bytes goes to `size`.
EXPORT const void *prudent_column(const Result *result, int which, int64_t *size) {
    const Run &run = result->run;
    const WholeLists &whole = result->whole;
    auto column = [&](const auto &values) -> const void * {
        *size = static_cast<int64_t>(values.size() * sizeof values[0]);
        return values.data();
    };
    switch (which) {
    case 0: return column(run.contexts);
    case 1: return column(run.context_ends);
    case 2: return column(run.items);
    case 3: return column(run.item_ends);
    case 4: return column(run.pairs);
    case 5: return column(run.cells);
    case 6: return column(run.code);
    case 7: return column(run.n);
    case 8: return column(result->tally);
    case 9: return column(result->accepted.lists);
    case 10: return column(whole.context);
    case 11: return column(whole.size);
    case 12: return column(whole.items);
    case 13: return column(whole.clicks);
    default: return column(whole.n);
    }
}
}
