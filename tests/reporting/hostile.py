"""A log whose names would like to be more than names, and the report on it."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


LINKS = (
    f"javascript:{RUN}",
    f" javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f'https://x/" onmouseover="{RUN}',
    f"https://x/' onmouseover='{RUN}",
    "https://user:secret@x/",
    "https://x/\u202emoc.elpmaxe",
    "//x.example/",
    "file:///etc/passwd",
    "vbscript:x",
    "https://",
    "https://[",
    "https://x/" + "a" * 5000,
    "../../etc/passwd",
)
IMAGES = (
    f"javascript:{RUN}",
    f"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>",
    f"data:text/html,<script>{RUN}</script>",
    "https://x.invalid/pixel.png",
    "http://x.invalid/pixel.png",
    "drawing.svg",
    "page.png",  # HTML by another name
    "../outside.png",
    "/etc/passwd",
    "/dev/zero",
    "large.png",
    "pixel.png",
    f"x' onerror='{RUN}",
    "a" * 5000,
    "nul\0.png",
    ".",
)
GOOD_LINK = "https://shop.example/p?q='1'&r=2"


def pixels(size: int = 8) -> bytes:
    """A picture in the format PNG."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * 3 * size) * size))
        + chunk(b"IEND", b"")
    )


def write_hostile_names(folder: Path) -> Path:
    """A table in which every item has a hostile name, and most have a hostile image and link."""
    inside = folder / "names"
    inside.mkdir()
    (inside / "pixel.png").write_bytes(pixels())
    (folder / "outside.png").write_bytes(pixels())
    (inside / "large.png").write_bytes(pixels() + bytes(60_000))
    (inside / "page.png").write_text(f"<script>{RUN}</script>")
    (inside / "drawing.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>")
    rows = [
        {
            "item": name,
            "name": "y" * 1_000_000 if at == 3 else PAYLOADS[(at + 7) % len(PAYLOADS)],
            "image": IMAGES[at % len(IMAGES)],
            "link": GOOD_LINK if at % 5 == 0 else LINKS[at % len(LINKS)],
        }
        for at, name in enumerate(PAYLOADS)
    ]
    pq.write_table(pa.Table.from_pylist(rows), inside / "names.parquet")
    return inside / "names.parquet"


def write_hostile_report(folder: Path, **settings: Any) -> Path:
    lists = hostile_lists()
    policy = prudent.rank(
        prudent.count(prudent.Log(table(lists[::2]))), model="dcm", bound="bayes(delta=0.2)", length=3
    )
    to = folder / "report.html"
    report(policy, prudent.Log(table(lists[1::2])), to=to, title=PAYLOADS[1], **settings)
    return to
