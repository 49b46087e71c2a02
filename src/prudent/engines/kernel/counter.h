// Counting the lists of some batches.
//
// Lists are gathered by context and counted one context at a time, so that the tables in use stay in the cache.
#pragma once

#include <numeric>

#include "names.h"

// The counts of some lists: `storage/run.py` says what each column holds.
struct Run {
    std::vector<char> contexts, items;             // names, one after the other
    std::vector<int64_t> context_ends, item_ends;  // where each text ends
    std::vector<uint32_t> pairs, cells, code;
    std::vector<uint64_t> n;
};

// The lists that were counted, by context.
struct Accepted {
    std::vector<int64_t> lists;   // of each context of the run
    std::vector<uint32_t> size;   // of each list
    std::vector<uint32_t> items;  // of each position of each list: the place of its item in its context
    std::vector<uint8_t> clicks;  // of each position of each list
};

namespace {

// Why a list is rejected: `logs/log.py` has the words.
enum Reason : uint8_t { NONE, CONTEXT, EMPTY, LENGTHS, TOO_LONG, ITEM, CLICK, DUPLICATE, NUL = 13, REASONS = 20 };

template <class Context, class Item> class Counter {
  public:
    std::vector<uint64_t> tally = std::vector<uint64_t>(REASONS);  // lists by reason

    Counter(const std::vector<Batch> &batches, const Types &types, int64_t max_positions, bool text_files)
        : batches(batches), click(types.click), max_positions(max_positions), text_files(text_files) {}

    void count(Run &run, Accepted &accepted) {
        gather();
        int64_t impressions = 0;
        for (const Batch &batch : batches) impressions += batch.item.length;
        run.code.reserve(static_cast<size_t>(impressions));  // at most: they never move, and take no memory before that
        run.n.reserve(static_cast<size_t>(impressions));
        accepted.items.reserve(static_cast<size_t>(impressions));
        accepted.clicks.reserve(static_cast<size_t>(impressions));
        for (size_t rank = 0; rank < sorted.size(); rank++) count_context(rank, run, accepted);
    }

  private:
    struct List {  // one without faults, except for those of names
        uint32_t batch, row, size;
        int64_t first;    // of its items
        uint64_t clicks;  // a bit for each position, or the first of its clicks where there are too many
    };
    const std::vector<Batch> &batches;
    char click;
    int64_t max_positions;
    bool text_files;               // only these have NUL bytes by accident
    std::vector<Context> sorted;   // contexts by name
    std::vector<List> lists;       // sorted by context
    std::vector<uint64_t> starts;  // of each context, among them; and the end
    Numbers<Item> items;           // this and the rest: of the context at hand
    std::vector<uint64_t> shown;   // item and code of each impression
    std::vector<uint32_t> listed, seen, order, rank_of, codes, ends;

    // The lists without faults, sorted by context; a counting sort, which keeps the order of lists. What is needed later
    // is taken along: lists of one context lie far apart, and to look for them there takes more time than all else.
    void gather() {
        Numbers<Context> contexts;
        std::vector<uint32_t> context;
        std::vector<List> found;
        for (uint32_t b = 0; b < batches.size(); b++) {
            const Batch &batch = batches[b];
            for (uint32_t row = 0; row < batch.length; row++) {
                List list{b, row, 0, 0, 0};
                int64_t reason = check(batch, list);
                tally[static_cast<size_t>(reason)] += copies(list);
                if (reason) continue;
                context.push_back(contexts.of(Context::at(batch.context, row)));
                found.push_back(list);
            }
        }
        std::vector<uint32_t> by_name(contexts.names.size()), rank(by_name.size());
        std::iota(by_name.begin(), by_name.end(), 0u);
        auto &names = contexts.names;
        std::sort(by_name.begin(), by_name.end(), [&](uint32_t a, uint32_t b) { return names[a] < names[b]; });
        for (uint32_t i = 0; i < by_name.size(); i++) {
            rank[by_name[i]] = i;
            sorted.push_back(names[by_name[i]]);
        }
        starts.assign(sorted.size() + 2, 0);
        for (uint32_t &number : context) starts[(number = rank[number]) + 2]++;
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        lists.resize(found.size());
        for (size_t i = 0; i < found.size(); i++) lists[starts[context[i] + 1]++] = found[i];
    }

    uint64_t copies(const List &list) const {
        const Column &column = batches[list.batch].copies;
        return column.valid(list.row) ? static_cast<uint64_t>(column.number('l', list.row)) : 0;
    }

    // Find the items and clicks of a list, or why it is rejected.
    int64_t check(const Batch &batch, List &list) const {
        int64_t row = list.row, fault = batch.fault.valid(row) ? batch.fault.number('i', row) : 0;
        if (fault >= REASONS) throw std::runtime_error("a fault without a reason");
        if (fault > 0) return fault;
        if (!batch.context.valid(row)) return CONTEXT;
        Span span = batch.items.valid(row) ? batch.items.span(row) : Span{0, 0};
        if (!span.size) return EMPTY;
        if (!batch.clicks.valid(row) || batch.clicks.span(row).size != span.size) return LENGTHS;
        if (span.size > max_positions) return TOO_LONG;
        for (int64_t k = 0; batch.item.bits && k < span.size; k++)
            if (!batch.item.valid(span.first + k)) return ITEM;
        int64_t first = batch.clicks.offset(row);
        for (int64_t k = 0; k < span.size; k++) {
            int64_t value = batch.click.number(click, first + k);
            if ((value & 1) != value || !batch.click.valid(first + k)) return CLICK;
            list.clicks |= static_cast<uint64_t>(value) << (k & 63);
        }
        if (span.size > 64) list.clicks = static_cast<uint64_t>(first);
        list.first = span.first;
        list.size = static_cast<uint32_t>(span.size);
        return NONE;
    }

    bool clicked(const List &list, uint32_t k) const {
        if (list.size <= 64) return list.clicks >> k & 1;
        return batches[list.batch].click.number(click, static_cast<int64_t>(list.clicks + k));
    }

    void count_context(size_t rank, Run &run, Accepted &accepted) {
        items.clear();
        shown.clear();
        seen.clear();
        bool nul = text_files && sorted[rank].has_nul();
        int64_t number = 0;
        for (uint64_t i = starts[rank]; i < starts[rank + 1]; i++) {
            if (i + 8 < lists.size()) prefetch(lists[i + 8], Item::prefetch_places);
            if (i + 4 < lists.size()) prefetch(lists[i + 4], Item::prefetch_names);
            Reason reason = add(lists[i], static_cast<uint32_t>(i + 1), nul);
            if (reason == NONE) {
                accepted.size.push_back(lists[i].size);
                number++;
            } else {
                tally[reason] += copies(lists[i]);
                tally[NONE] -= copies(lists[i]);
            }
        }
        if (!number) return;
        if (shown.size() > UINT32_MAX) throw std::runtime_error("more than 4,294,967,295 impressions of a context at a time");
        accepted.lists.push_back(number);
        sorted[rank].append(run.contexts, run.context_ends);
        write_pairs(run);
        for (uint64_t one : shown) {
            accepted.items.push_back(rank_of[one >> 32]);
            accepted.clicks.push_back(one >> 1 & 1);
        }
    }

    template <class Ask> void prefetch(const List &list, Ask ask) const {
        ask(batches[list.batch].item, list.first, list.size);
    }

    // Add the impressions of a list, or say why it is rejected; `mark` is a number of its own.
    Reason add(const List &list, uint32_t mark, bool nul) {
        const Column &names = batches[list.batch].item;
        uint32_t last = list.size;
        listed.resize(list.size);
        for (uint32_t k = 0; k < list.size; k++) {
            Item name = Item::at(names, list.first + k);
            nul = nul || (text_files && name.has_nul());
            uint32_t number = listed[k] = items.of(name);
            if (number == seen.size()) seen.push_back(0);
            if (seen[number] == mark) return DUPLICATE;
            seen[number] = mark;
        }
        if (nul) return NUL;
        while (last && !clicked(list, last - 1)) last--;
        for (uint32_t k = 0, prev = 0; k < list.size; k++) {
            uint32_t position = k + 1, value = clicked(list, k);
            uint32_t code = position << 16 | prev << 2 | value << 1 | (last > position);
            shown.push_back(uint64_t{listed[k]} << 32 | code);
            if (value) prev = position;
        }
        return NONE;
    }

    // The pairs of a context in the order of their names, and the cells of each in the order of their codes.
    void write_pairs(Run &run) {
        size_t distinct = items.names.size();
        ends.assign(distinct + 1, 0);
        for (uint64_t one : shown) ends[(one >> 32) + 1]++;
        order.clear();
        for (uint32_t i = 0; i < distinct; i++) {
            if (ends[i + 1]) order.push_back(i);  // the others are of rejected lists alone
            ends[i + 1] += ends[i];
        }
        codes.resize(shown.size());
        for (uint64_t one : shown) codes[ends[one >> 32]++] = static_cast<uint32_t>(one);
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return items.names[a] < items.names[b]; });
        run.pairs.push_back(static_cast<uint32_t>(order.size()));
        rank_of.resize(distinct);
        for (uint32_t i = 0; i < order.size(); i++) {
            uint32_t item = order[i];
            rank_of[item] = i;
            items.names[item].append(run.items, run.item_ends);
            write_cells(codes.data() + (item ? ends[item - 1] : 0), codes.data() + ends[item], run);
        }
    }

    static void write_cells(uint32_t *first, uint32_t *end, Run &run) {
        std::sort(first, end);
        uint32_t cells = 0;
        for (uint32_t *from = first; from < end; cells++) {
            uint32_t *to = std::upper_bound(from, end, *from);
            run.code.push_back(*from);
            run.n.push_back(static_cast<uint64_t>(to - from));
            from = to;
        }
        run.cells.push_back(cells);
    }
};

}  // namespace
