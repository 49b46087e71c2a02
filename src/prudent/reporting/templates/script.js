"use strict";
(() => {
  // Names are untrusted: they become text nodes, never markup.
  const SVG = "http://www.w3.org/2000/svg";
  const {contexts, total, items, images, rewards} = JSON.parse(document.getElementById("data").textContent);
  const [ITEM, INCUMBENT, RANK, IMPRESSIONS, CLICKS, LOWER, MEAN, UPPER, WHY, LABEL] = Array(10).keys();
  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const found = document.getElementById("found");
  const hits = document.getElementById("hits");
  const announced = document.getElementById("opened");
  const detail = document.getElementById("detail");
  if (!contexts.length) return;

  const make = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children.filter((child) => child !== null));  // strings become text
    return node;
  };
  const el = (tag, attributes = {}, ...children) => make(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => make(document.createElementNS(SVG, tag), attributes, children);
  const name = (text) => el("bdi", {title: text}, text);
  const label = (row) => items[row[LABEL]] ?? ["", "", null];
  const called = (id, text) => text ? el("bdi", {title: id}, text) : name(id);  // as people know it, or as the log does
  const thumb = (image) => image === null ? null : el("img", {class: "thumb", src: images[image], alt: "", width: 36, height: 36,
    loading: "lazy", referrerpolicy: "no-referrer"});
  const item = (row) => {
    const [text, link, image] = label(row);
    const shown = called(row[ITEM], text);
    return el("span", {class: "thing"}, thumb(image), el("span", {},
      /^https?:/i.test(link) ? el("a", {href: link, rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer", target: "_blank"}, shown) : shown,
      text ? " " : null, text ? el("bdi", {class: "id"}, row[ITEM]) : null));
  };
  const count = (n) => n === null ? "–" : n.toLocaleString("en");
  const most = rewards ? Infinity : 1;  // an attraction is a probability
  const number = (x, digits) => x === null ? "–" : x.toFixed(digits).replace("-", "−");
  const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
  const clip = (x) => Math.min(most, Math.max(0, x));
  const placed = (rows, by) => rows.filter((row) => row[by] !== null).sort((a, b) => a[by] - b[by]);
  const changes = (context) => context.rows.some((row) => row[INCUMBENT] !== row[RANK]);

  // --- finding a context

  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const folded = contexts.map((context) => fold(`${context.label ?? ""} ${context.name}`));
  const options = contexts.map((context, i) => {
    const option = el("li", {role: "option", id: `context-${i}`, "aria-selected": "false"},
      called(context.name, context.label), el("span", {class: "lists"}, plural(context.lists, "list")));
    option.addEventListener("click", () => { activate(i); open(i); });
    return option;
  });
  let matching = [], active = -1, opened = -1;

  const activate = (i) => {
    if (active >= 0) options[active].classList.remove("active");
    active = i;
    if (i < 0) return search.removeAttribute("aria-activedescendant");
    options[i].classList.add("active");
    search.setAttribute("aria-activedescendant", options[i].id);
    found.setAttribute("aria-activedescendant", options[i].id);
    const above = options[i].offsetTop - found.offsetTop;  // scrolls the list and not the page
    if (above < found.scrollTop) found.scrollTop = above;
    else if (above + options[i].offsetHeight > found.scrollTop + found.clientHeight)
      found.scrollTop = above + options[i].offsetHeight - found.clientHeight;
  };

  const filter = () => {
    const words = fold(search.value).split(/\s+/).filter(Boolean);
    matching = contexts.map((_, i) => i).filter((i) =>
      words.every((word) => folded[i].includes(word)) && (!only.checked || changes(contexts[i])));
    found.replaceChildren(...matching.map((i) => options[i]));
    found.scrollTop = 0;
    activate(matching.includes(active) ? active : matching.length ? matching[0] : -1);
    hits.textContent = matching.length
      ? `${plural(matching.length, "context")} of ${count(total)}`
      : "No context on this page has that name.";
  };

  const move = (event) => {
    const at = matching.indexOf(active);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8}[event.key];
    if (to !== undefined && matching.length) {
      event.preventDefault();
      activate(matching[Math.min(matching.length - 1, Math.max(0, to))]);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      open(active);
    } else if (event.key === "Escape" && search.value) {
      event.preventDefault();
      search.value = "";
      filter();
    }
  };

  // --- one context

  const badge = (row) => {
    const by = row[INCUMBENT] - row[RANK];
    const [kind, sign, label] = row[INCUMBENT] === null ? ["new", "new", "not in the incumbent list"]
      : row[RANK] === null ? ["out", "out", "not in the policy's list"]
      : by > 0 ? ["up", `▲ ${by}`, `up ${by}`]
      : by < 0 ? ["down", `▼ ${-by}`, `down ${-by}`]
      : ["same", "=", "same position"];
    return el("span", {class: `badge ${kind}`}, el("span", {"aria-hidden": "true"}, sign), el("span", {class: "sr"}, label));
  };

  const column = (rows, by, badged) => el("ol", {}, ...rows.map((row) =>
    el("li", row[RANK] === null ? {class: "gone"} : {},
      el("span", {class: "no"}, String(row[by])), called(row[ITEM], label(row)[0]), badged(row) ? badge(row) : null)));

  const sides = (context) => {
    const before = placed(context.rows, INCUMBENT), after = placed(context.rows, RANK);
    const tall = 32, height = tall * Math.max(before.length, after.length, 1);
    const lines = svg("svg", {viewBox: `0 0 56 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true"});
    before.forEach((row, i) => {
      const y = tall * (i + .5), j = after.indexOf(row);
      if (j < 0) return lines.append(svg("line", {class: "stub", "vector-effect": "non-scaling-stroke", x1: 4, x2: 20, y1: y, y2: y}));
      const to = tall * (j + .5);
      lines.append(svg("path", {
        class: `slope ${j < i ? "up" : j > i ? "down" : "same"}`, "vector-effect": "non-scaling-stroke",
        d: `M4,${y} C28,${y} 28,${to} 52,${to}`}));
    });
    after.forEach((row, j) => {
      const y = tall * (j + .5);
      if (!before.includes(row)) lines.append(svg("line",
        {class: "stub new", "vector-effect": "non-scaling-stroke", x1: 36, x2: 52, y1: y, y2: y}));
    });
    const incumbent = before.length ? column(before, INCUMBENT, (row) => row[RANK] === null) : el("p", {}, "not known");
    return el("div", {class: "sides"},
      el("div", {}, el("h4", {}, "Incumbent list"), incumbent), el("div", {class: "between"}, lines),
      el("div", {}, el("h4", {}, "Policy's list"), column(after, RANK, () => before.length > 0)));
  };

  const WIDE = 220, PAD = 8;
  const scaleOf = (rows) => {
    const ends = rows.flatMap((row) => [row[UPPER], row[MEAN], row[LOWER]]).filter((x) => x !== null).map(clip);
    const top = Math.max(...ends, 1e-6);
    const power = 10 ** Math.floor(Math.log10(top));
    const nice = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((k) => k * power).find((x) => x >= top * .999);
    const digits = rewards ? Math.max(0, 3 - Math.round(Math.log10(power))) : 3;
    return {top: nice, digits, x: (value) => PAD + (WIDE - 2 * PAD) * clip(value) / nice};
  };

  // Text of the page, not of the SVG, which scales with its column.
  const axis = ({top}) => el("span", {class: "axis", "aria-hidden": "true"},
    ...[0, top / 2, top].map((at) => el("span", {}, String(Number(at.toPrecision(3))))));
  const below = (row) => row[LOWER] === null || row[LOWER] < 0;
  const above = (row) => row[UPPER] > most;
  const cap = (x) => `M${x},5 V17`;
  const arrow = (x, way) => `M${x - 5 * way},6 L${x},11 L${x - 5 * way},16`;

  const picture = (row, {x, digits}) => {
    if (row[MEAN] === null) return "–";
    const lower = row[LOWER] === null ? 0 : row[LOWER];
    const label = row[UPPER] === null ? `posterior mean ${number(row[MEAN], digits)}`
      : `posterior mean ${number(row[MEAN], digits)}, interval from ${number(row[LOWER], digits)} to ${number(row[UPPER], digits)}`;
    return svg("svg", {viewBox: `0 0 ${WIDE} 22`, role: "img", "aria-label": label},
      svg("title", {}, label),
      row[UPPER] === null ? null
        : svg("path", {class: "interval", d: `M${x(lower)},11 H${x(row[UPPER])} `
          + (below(row) ? arrow(x(lower), -1) : cap(x(lower))) + (above(row) ? arrow(x(row[UPPER]), 1) : cap(x(row[UPPER])))}),
      svg("circle", {class: "mean", cx: x(row[MEAN]), cy: 11, r: 3.5}));
  };

  const table = (context) => {
    const rows = context.rows, scale = scaleOf(rows);
    const bounds = rows.filter((row) => row[RANK] !== null && row[LOWER] !== null).map((row) => row[LOWER]);
    const cut = bounds.length ? Math.min(...bounds) : null;
    const head = (kind, ...children) => el("th", {scope: "col", role: "columnheader", class: kind}, ...children);
    const cell = (kind, ...children) => el("td", {role: "cell", class: kind}, ...children);
    const pictured = (td) => {
      if (cut !== null) td.style.setProperty("--cut", `${100 * scale.x(cut) / WIDE}%`);
      return td;
    };
    const body = (kind, title, some) => !some.length ? null : el("tbody", {role: "rowgroup", class: kind},
      el("tr", {role: "row", class: "group"}, el("th", {scope: "rowgroup", role: "rowheader", colspan: 7}, title)),
      ...some.map((row) => el("tr", {role: "row"},
        cell("place n", row[RANK] === null ? "–" : String(row[RANK])),
        cell("place before n", row[INCUMBENT] === null ? "–" : String(row[INCUMBENT])),
        el("th", {scope: "row", role: "rowheader", class: "item"}, item(row)),
        pictured(cell("picture", picture(row, scale))),
        cell("lower n", number(row[LOWER], scale.digits)),
        cell("counts n", `${count(row[CLICKS])} / ${count(row[IMPRESSIONS])}`),
        cell("why", row[WHY]))));
    return el("div", {class: "wide", role: "region", "aria-label": "Candidates", tabindex: "0"},
      el("table", {role: "table", class: "candidates"},
        el("thead", {role: "rowgroup"}, el("tr", {role: "row"},
          head("place n", "now"), head("place before n", "was"), head("item", "item"),
          head("picture", el("span", {}, rewards ? "reward per examination" : "attraction"), axis(scale)), head("lower n", "lower bound"),
          head("counts n", "clicks / impressions"), head("why", "why"))),
        body("listed", "In the policy's list", rows.filter((row) => row[RANK] !== null)),
        body("left", "No longer listed", rows.filter((row) => row[RANK] === null && row[INCUMBENT] !== null)),
        body("rest", "Other candidates", rows.filter((row) => row[RANK] === null && row[INCUMBENT] === null))));
  };

  const open = (i) => {
    if (opened >= 0) options[opened].setAttribute("aria-selected", "false");
    opened = i;
    options[i].setAttribute("aria-selected", "true");
    const context = contexts[i];
    announced.textContent = `${context.label ?? context.name} is open`;
    const moved = context.rows.filter((row) => row[RANK] !== null && row[INCUMBENT] !== row[RANK]).length;
    const key = (kind, text) => el("li", {}, el("span", {class: `key ${kind}`}), text);
    const spans = context.rows.some((row) => row[UPPER] !== null);
    detail.replaceChildren(
      el("h3", {id: "chosen"}, called(context.name, context.label)),
      el("p", {class: "summary"}, `${plural(context.lists, "logged list")}; `
        + (moved ? `${count(moved)} of ${plural(placed(context.rows, RANK).length, "position")} ${moved === 1 ? "changes" : "change"}` : "the list does not change")
        + (context.more ? `; ${plural(context.more, "position")} further down ${context.more === 1 ? "is" : "are"} not shown` : "")),
      sides(context), table(context),
      spans ? el("ul", {class: "keys"}, key("span-key", "interval; the dot is the posterior mean"),
        key("cut-key", "smallest lower bound in the policy's list"),
        context.rows.some((row) => row[UPPER] !== null && (below(row) || above(row)))
          ? el("li", {}, "an arrow marks an interval that exceeds the axis") : null) : "");
  };

  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  search.addEventListener("keydown", move);
  found.addEventListener("keydown", move);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  document.getElementById("explorer").hidden = false;
  filter();
  open(0);
})();
