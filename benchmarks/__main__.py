"""``python -m benchmarks PART ...``: measure some parts; by default those that take a few minutes."""

import importlib
import sys

PARTS = {
    "limits": "limits",
    "experiments": "experiments",
    "plain": "peers_plain",
    "clax": "peers_clax",
    "sizes": "sizes",
    "pairs": "pairs",
    "evaluate": "evaluating",
    "spark": "peers_spark",
}
DEFAULT = ("limits", "experiments")


def main(parts: list[str]) -> None:
    for part in parts:
        if part not in PARTS:
            sys.exit(f"There is no part {part}. Known: {', '.join(PARTS)}.")
    for part in parts or DEFAULT:
        importlib.import_module(f"benchmarks.{PARTS[part]}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
