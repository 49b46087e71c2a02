// What users read below last clicks: parameters of every pair as the fixed point of an iteration, one context at a time.
//
// `click_models/tails.py` has the model, and with `base/numerics/squarem.py` the same by NumPy: no sum or product may
// change its order here, for the twin gives the same bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

struct Users {              // who may stop after every item
    double unclicked;       // P(they go on after an item that they do not click)
    const double *clicked;  // and after one that they click
    int64_t positions;      // how many of these there are, by position
    int32_t by;             // what that depends on besides
    double start;           // of t, the probability that a click does not satisfy
    double alpha, beta;     // of the distribution of 1 − t
    double tolerance;
};

struct Settled {  // of each pair, impression in a tail and last click
    double *parameters, *clicks, *examined, *chance, *unread;
    int64_t tails, lasts;  // how many there are
};

namespace {

enum By : int32_t { BY_POSITION, BY_ATTRACTION, BY_ITEM };  // clicked[position − 1], between clicked[0] and [1] by θ, clicked[0]·t

constexpr double TINY = 1e-300;
constexpr int ROUNDS_AT_A_TIME[] = {3, 10, 20, 40, 80, 160, 320, 640, 1280};

inline double most(double a, double b) { return a >= b || a != a ? a : b; }  // as NumPy has it: NaN stays
inline double least(double a, double b) { return a <= b || a != a ? a : b; }

class Settler {
  public:
    bool restless = false;  // whether a context did not come to rest
    bool full() const { return !settled.tails && !settled.lasts; }

    Settler(const Users &users, const Settled &settled) : users(users), settled(settled), width(users.by == BY_ITEM ? 2 : 1) {}

    // The next context; false where a table is too short, or there are more cells of a kind than was said.
    bool settle(const uint32_t *sizes, int64_t number, const uint32_t *code, const double *n) {
        pairs = static_cast<size_t>(number);
        if (!gather(sizes, code, n)) return false;
        begin();
        bool rest = false;
        for (int rounds : ROUNDS_AT_A_TIME)
            if ((rest = run(rounds))) break;
        restless |= !rest;
        return write();
    }

  private:
    struct Impression {  // in a tail
        uint32_t pair, slot;
        double n;
    };
    struct Last {
        uint32_t pair, position;
        int64_t tail;  // or −1 where nothing is below
        double n;
    };
    struct Tail {  // lists of a context with the same last click
        uint32_t last, slots;  // its position, and the number of its first slot
        double lists, ends, start, quiet;
    };
    struct Slot {  // a position of a tail
        double mean, skip, below, chance;
    };
    const Users &users;
    Settled settled;  // where the next results go
    const size_t width;  // parameters of a pair
    size_t pairs = 0;
    double rated = 0;
    std::vector<Impression> impressions;
    std::vector<Last> lasts;
    std::vector<Tail> tails;
    std::vector<Slot> slots;
    std::vector<uint32_t> keys, order;  // of impressions in tails, and of slots: the last click, and the position
    std::vector<int64_t> tail_of;       // by its last click
    static constexpr uint32_t WORD = 64;
    bool short_lists = true;
    uint32_t place[WORD][WORD];  // of slots, by last click and position
    std::vector<double> clicks, surely, followed, sums, examined, x, first, second, guess, fallback;

    bool gather(const uint32_t *sizes, const uint32_t *code, const double *n) {
        clicks.assign(pairs, 0);
        surely.assign(pairs, 0);
        followed.assign(pairs, 0);
        impressions.clear();
        lasts.clear();
        keys.clear();
        for (uint32_t pair = 0; pair < pairs; pair++) {
            for (uint32_t i = 0; i < sizes[pair]; i++, code++, n++) {
                uint32_t position = *code >> 16, prev = *code >> 2 & 0x3FFF, kind = *code & 3;
                if (kind & 2) clicks[pair] += *n;
                if (kind == 3) followed[pair] += *n;
                if (kind == 0 && (users.unclicked != 1 || prev > 0)) {
                    keys.push_back(prev << 16 | position);
                    impressions.push_back({pair, 0, *n});
                    continue;
                }
                surely[pair] += *n;
                if (kind != 2) continue;
                if (users.by == BY_POSITION && (!position || position > users.positions)) return false;
                lasts.push_back({pair, position, -1, *n});
            }
        }
        number_slots();
        rated = 0;
        for (double one : clicks) rated += one;
        rated += 1;
        return true;
    }

    // Tails by their last click, and the slots of each by their position.
    void number_slots() {
        sort_keys();
        slots.assign(order.size(), {});
        tails.clear();
        tail_of.clear();
        for (uint32_t slot = 0; slot < order.size(); slot++) {
            const uint32_t last = order[slot] >> 16;
            if (slot && last == order[slot - 1] >> 16) continue;
            tail_of.resize(last + 1, -1);
            tail_of[last] = static_cast<int64_t>(tails.size());
            tails.push_back({last, slot, 0, 0, 1, 1});
        }
        for (size_t i = 0; i < keys.size(); i++) {
            const uint32_t last = keys[i] >> 16, position = keys[i] & 65535;
            impressions[i].slot = short_lists ? place[last][position] : find(keys[i]);
            if (position == last + 1) tails[static_cast<size_t>(tail_of[last])].lists += impressions[i].n;
        }
        for (Last &last : lasts) {
            if (last.position < tail_of.size()) last.tail = tail_of[last.position];
            if (last.tail >= 0) tails[static_cast<size_t>(last.tail)].ends += last.n;
        }
    }

    // The distinct keys in ascending order, with a bit for each where positions have room in a word.
    void sort_keys() {
        short_lists = std::all_of(keys.begin(), keys.end(), [](uint32_t key) { return (key & 65535) < WORD && key >> 16 < WORD; });
        order.clear();
        if (!short_lists) {
            order.assign(keys.begin(), keys.end());
            std::sort(order.begin(), order.end());
            order.erase(std::unique(order.begin(), order.end()), order.end());
            return;
        }
        uint64_t positions[WORD] = {};  // of each tail
        for (uint32_t key : keys) positions[key >> 16] |= uint64_t{1} << (key & 65535);
        for (uint32_t last = 0; last < WORD; last++)
            for (uint64_t left = positions[last]; left; left &= left - 1) {
                const auto position = static_cast<uint32_t>(__builtin_ctzll(left));
                place[last][position] = static_cast<uint32_t>(order.size());
                order.push_back(last << 16 | position);
            }
    }

    uint32_t find(uint32_t key) const {
        return static_cast<uint32_t>(std::lower_bound(order.begin(), order.end(), key) - order.begin());
    }

    void begin() {
        x.resize(pairs * width);
        smooth(surely, x);
        if (width == 2)
            for (size_t i = 0; i < pairs; i++) x[2 * i + 1] = users.start;
        for (auto *one : {&first, &second, &guess, &fallback}) one->resize(pairs * width);
    }

    // θ = n₊/n, with two more examinations that were clicked as often as others of the context.
    void smooth(const std::vector<double> &of, std::vector<double> &to) const {
        double total = 0;
        for (double one : of) total += one;
        const double twice = 2 * (rated / (total + 2));
        for (size_t i = 0; i < pairs; i++) to[i * width] = (clicks[i] + twice) / (of[i] + 2);
    }

    double goes_on(const Last &last, const std::vector<double> &at) const {
        const double *own = &at[last.pair * width];
        if (users.by == BY_POSITION) return users.clicked[last.position - 1];
        if (users.by == BY_ATTRACTION) return users.clicked[0] * (1 - own[0]) + users.clicked[1] * own[0];
        return users.clicked[0] * own[1];
    }

    // What was read: ρ of every slot, and the examinations of every pair.
    void read(const std::vector<double> &at) {
        const double gamma = users.unclicked;
        for (Slot &slot : slots) slot.mean = 0;
        for (const Impression &one : impressions) slots[one.slot].mean += one.n * at[one.pair * width];
        for (Tail &tail : tails) tail.start = 0;
        for (const Last &last : lasts)
            if (last.tail >= 0) tails[static_cast<size_t>(last.tail)].start += last.n * goes_on(last, at);
        for (size_t t = 0; t < tails.size(); t++) {
            Tail &tail = tails[t];
            const size_t from = tail.slots, to = t + 1 < tails.size() ? tails[t + 1].slots : slots.size();
            tail.start = tail.last ? tail.start / most(tail.ends, TINY) : 1.0;
            tail.quiet = 1;
            for (size_t s = to; s-- > from;) {
                slots[s].skip = most(1 - slots[s].mean / tail.lists, TINY);
                slots[s].below = 1 - gamma + gamma * tail.quiet;
                tail.quiet = slots[s].skip * slots[s].below;
            }
            const double silent = 1 - tail.start * (1 - tail.quiet);
            double above = tail.start;
            for (size_t s = from; s < to; s++) {
                const double read = most(above * slots[s].below, TINY);
                above *= slots[s].skip * gamma;
                slots[s].chance = read / most(silent - read * slots[s].skip + read, read);
            }
        }
        examined.assign(pairs, 0);
        for (const Impression &one : impressions) {
            const double own = at[one.pair * width], chance = slots[one.slot].chance;
            examined[one.pair] += one.n * chance * (1 - own) / most(1 - chance * own, TINY);
        }
        for (size_t i = 0; i < pairs; i++) examined[i] = surely[i] + examined[i];
    }

    // P(a click below a last one | the user goes on).
    double unread(const Last &last) const {
        if (last.tail < 0) return 0;
        const Tail &tail = tails[static_cast<size_t>(last.tail)];
        const double longer = tail.last && tail.ends > 0 ? tail.lists / tail.ends : 1.0;
        return (1 - tail.quiet) * least(longer, 1.0);
    }

    // The next parameters.
    void step(const std::vector<double> &at, std::vector<double> &to) {
        read(at);
        smooth(examined, to);
        if (width == 1) return;
        sums.assign(pairs, 0);
        for (const Last &last : lasts) {
            const double t = at[last.pair * 2 + 1], ended = t * (1 - users.clicked[0] * unread(last));
            sums[last.pair] += last.n * (ended / most(1 - t + ended, TINY));
        }
        for (size_t i = 0; i < pairs; i++)
            to[2 * i + 1] = (followed[i] + sums[i] + users.beta) / (clicks[i] + users.alpha + users.beta);
    }

    // So many rounds of SQUAREM; whether the context has come to rest.
    bool run(int rounds) {
        double before = std::numeric_limits<double>::infinity(), longest = 4;
        fallback = x;
        while (true) {
            step(x, first);
            double squares = 0, largest = 0;
            for (size_t i = 0; i < x.size(); i++) {
                const double r = first[i] - x[i];
                squares += r * r;
                largest = most(largest, std::fabs(r));
            }
            const double moved = std::sqrt(squares);
            const bool astray = !(moved <= 2 * before);
            const bool rest = !astray && largest < users.tolerance;
            if (rest || !--rounds) {
                x = astray ? fallback : first;
                return rest;
            }
            if (astray) {
                x = fallback;
                before = std::numeric_limits<double>::infinity();
                longest = 4;
                continue;
            }
            step(first, second);
            squares = 0;
            for (size_t i = 0; i < x.size(); i++) {
                const double v = second[i] - first[i] - (first[i] - x[i]);
                squares += v * v;
            }
            const double bend = std::sqrt(squares);
            const double stride = least(most(bend > 0 ? moved / bend : 1.0, 1.0), longest);
            for (size_t i = 0; i < x.size(); i++) {
                const double r = first[i] - x[i], v = second[i] - first[i] - r;
                guess[i] = least(most(x[i] + 2 * stride * r + stride * stride * v, 0.0), 1.0);
            }
            if (stride == longest) longest *= 4;
            fallback = second;
            before = moved;
            step(guess, x);
        }
    }

    bool write() {
        if (static_cast<int64_t>(impressions.size()) > settled.tails || static_cast<int64_t>(lasts.size()) > settled.lasts)
            return false;
        settled.tails -= static_cast<int64_t>(impressions.size());
        settled.lasts -= static_cast<int64_t>(lasts.size());
        read(x);
        settled.parameters = std::copy(x.begin(), x.end(), settled.parameters);
        settled.clicks = std::copy(clicks.begin(), clicks.end(), settled.clicks);
        settled.examined = std::copy(examined.begin(), examined.end(), settled.examined);
        for (const Impression &one : impressions) *settled.chance++ = slots[one.slot].chance;
        for (const Last &last : lasts) *settled.unread++ = unread(last);
        return true;
    }
};

// Every context in turn, of so many pairs each: 0 where all came to rest, 1 where some did not, −1 where sizes or tables
// do not fit.
inline int settle_contexts(const uint32_t *pairs, int64_t contexts, const uint32_t *sizes, int64_t rows,
                           const uint32_t *code, const double *n, int64_t cells, const Users &users,
                           const Settled &settled) {
    Settler settler(users, settled);
    for (int64_t context = 0; context < contexts; context++) {
        if (pairs[context] > rows) return -1;
        int64_t own = 0;
        for (uint32_t i = 0; i < pairs[context]; i++) own += sizes[i];
        if (own > cells || !settler.settle(sizes, pairs[context], code, n)) return -1;
        sizes += pairs[context];
        rows -= pairs[context];
        code += own;
        n += own;
        cells -= own;
    }
    return rows || cells || !settler.full() ? -1 : settler.restless;
}

}  // namespace
