// The sum of several runs.
#pragma once

#include "counter.h"

// A run that somebody else keeps; each of its lists counts `weight` times.
struct View {
    const char *contexts, *items;
    const int64_t *context_ends, *item_ends;
    const uint32_t *pairs, *cells, *code;
    const uint64_t *n;
    int64_t size;  // contexts
    uint64_t weight;
    uint32_t *places;  // of its pairs in the sum, to be written
};

namespace {

// All runs are sorted, so that the smallest of their next names is the next of the sum; there are few runs, and looking
// at each of them is cheaper than a heap.
template <class Context, class Item> class Merger {
  public:
    Merger(const View *views, int64_t number, Run &run) : run(run) {
        for (int64_t i = 0; i < number; i++) cursors.push_back({&views[i]});
    }

    void merge() {
        std::vector<Cursor *> all, here;
        for (auto &cursor : cursors) all.push_back(&cursor);
        while (next(
            all, here, [](const Cursor &c) { return c.context < c.view->size; },
            [](const Cursor &c) { return Context::at(c.view->contexts, c.view->context_ends, c.context); }))
            merge_context(here);
    }

  private:
    struct Cursor {
        const View *view;
        int64_t context = 0, pair = 0, pair_end = 0, cell = 0, cell_end = 0;
    };
    Run &run;
    std::vector<Cursor> cursors;
    std::vector<Cursor *> same;

    // Those of the cursors that are at the smallest name, or false where all have ended.
    template <class More, class At>
    static bool next(const std::vector<Cursor *> &among, std::vector<Cursor *> &here, More more, At at) {
        here.clear();
        for (auto *cursor : among) {
            if (!more(*cursor)) continue;
            if (here.empty() || at(*cursor) < at(*here[0])) here.assign(1, cursor);
            else if (at(*cursor) == at(*here[0])) here.push_back(cursor);
        }
        return !here.empty();
    }

    void merge_context(const std::vector<Cursor *> &here) {
        const Cursor &one = *here[0];
        Context::at(one.view->contexts, one.view->context_ends, one.context).append(run.contexts, run.context_ends);
        for (auto *cursor : here) cursor->pair_end = cursor->pair + cursor->view->pairs[cursor->context++];
        uint32_t pairs = 0;
        for (; next(
                 here, same, [](const Cursor &c) { return c.pair < c.pair_end; },
                 [](const Cursor &c) { return Item::at(c.view->items, c.view->item_ends, c.pair); });
             pairs++)
            merge_pair();
        run.pairs.push_back(pairs);
    }

    void merge_pair() {
        const Cursor &one = *same[0];
        Item::at(one.view->items, one.view->item_ends, one.pair).append(run.items, run.item_ends);
        for (auto *cursor : same) {
            cursor->view->places[cursor->pair] = static_cast<uint32_t>(run.cells.size());
            cursor->cell_end = cursor->cell + cursor->view->cells[cursor->pair++];
        }
        uint32_t cells = 0;
        for (;; cells++) {
            uint32_t least = UINT32_MAX;  // above every code
            for (auto *cursor : same)
                if (cursor->cell < cursor->cell_end) least = std::min(least, cursor->view->code[cursor->cell]);
            if (least == UINT32_MAX) break;
            uint64_t n = 0;
            for (auto *cursor : same)
                if (cursor->cell < cursor->cell_end && cursor->view->code[cursor->cell] == least)
                    n += cursor->view->n[cursor->cell++] * cursor->view->weight;
            run.code.push_back(least);
            run.n.push_back(n);
        }
        run.cells.push_back(cells);
    }
};

}  // namespace
