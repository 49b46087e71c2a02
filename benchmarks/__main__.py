"""``python -m benchmarks PART ...``: measure some parts; by default those that take a few minutes."""

import importlib
import sys

from benchmarks.logs import LOGS
from benchmarks.measuring import measure
from benchmarks.work import compiled

PARTS = {
    **dict.fromkeys(LOGS, "table"),
    "experiments": "experiments",
    "clax": "peers_clax",
    "models": "models",
    "sizes": "sizes",
    "pairs": "pairs",
    "evaluate": "evaluating",
    "spark": "peers_spark",
}
DEFAULT = ("tail", "experiments")


def main(parts: list[str]) -> None:
    for part in parts:
        if part not in PARTS:
            sys.exit(f"There is no part {part}. Known: {', '.join(PARTS)}.")
    if not measure(compiled)[1]:
        sys.exit("The counting kernel is not compiled, or not from this source: python -m prudent.engines.kernel")
    for part in parts or DEFAULT:
        importlib.import_module(f"benchmarks.{PARTS[part]}").main(*[part] if part in LOGS else [])


if __name__ == "__main__":
    main(sys.argv[1:])
