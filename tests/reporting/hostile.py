"""A log whose names would like to be more than names, and the report on it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import prudent
from prudent.reporting import report
from tests.reference import LoggedList
from tests.strategies import table

RUN = "window.hacked=1"
PAYLOADS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    "<!--<script>",
    f"--><img src=x onerror={RUN}>",
    f'"><svg onload={RUN}>',
    f"' onmouseover='{RUN}' autofocus onfocus='{RUN}",
    "{{7*7}}",
    "${7*7}",
    "{% raw %}",
    f"javascript:{RUN}",
    f"\u2028{RUN}//",
    f"\u202e{RUN}\u202c",
    f"]]><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</title></textarea><script>{RUN}</script>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"<a href=javascript:{RUN}>here</a>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    "\x1b]0;title\x07\x1b[31m",
    "\\u003cscript\\u003e",
    "&lt;b&gt;&#0;",
    "line\r\nbreak\ttab",
    "__proto__",
    "constructor",
    "x" * 4000,
    "走る靴 naïve Ünï 🦊👩‍👩‍👧",
    "שלום עולם",
    " ",
    "",
    "e\u0301" + "\u0300" * 60,
)


def hostile_lists(names: Sequence[str] = PAYLOADS, per_context: int = 40) -> list[LoggedList]:
    """Each name is a context, and an item of some others."""
    random = np.random.default_rng(0)
    taste = random.beta(1, 4, len(names))
    lists: list[LoggedList] = []
    for at, context in enumerate(names):
        near = [(at + step) % len(names) for step in range(6)]
        for _ in range(per_context):
            shown = random.permutation(near)[:4]
            clicks = random.random(4) < taste[shown] / np.arange(1, 5) ** 0.5
            lists.append((context, tuple(names[i] for i in shown), tuple(int(click) for click in clicks)))
    return lists


def write_hostile_report(folder: Path) -> Path:
    lists = hostile_lists()
    policy = prudent.rank(
        prudent.count(prudent.Log(table(lists[::2]))), model="dcm", bound="bayes(delta=0.2)", length=3
    )
    to = folder / "report.html"
    report(policy, prudent.Log(table(lists[1::2])), to=to, title=PAYLOADS[1])
    return to
