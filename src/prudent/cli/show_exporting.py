"""What `prudent export` shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prudent.cli.terminal import plain, say


def show_exported(manifest: Mapping[str, Any], output: Path, load: str) -> None:
    """What was written, and the command that loads it."""
    rulesets = len(manifest.get("rulesets", ()))
    split = f" in {rulesets:,} ruleset{'' if rulesets == 1 else 's'}" if "rulesets" in manifest else ""
    say(f"Wrote {manifest['contexts']:,} lists, {manifest['items']:,} items in all{split}, to {plain(str(output))}.")
    if load:
        say(f"Next: {plain(load)}")
