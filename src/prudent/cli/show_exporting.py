"""What `prudent export` shows."""

from pathlib import Path
from typing import TYPE_CHECKING

from prudent.cli.terminal import plain, say

if TYPE_CHECKING:
    from prudent.storage.manifest import Manifest


def show_exported(manifest: "Manifest", output: Path, load: str) -> None:
    """What was written, and the command that loads it."""
    written = manifest.results
    rulesets = len(written.get("rulesets", ()))
    split = f" in {rulesets:,} ruleset{'' if rulesets == 1 else 's'}" if "rulesets" in written else ""
    say(f"Wrote {written['contexts']:,} lists, {written['items']:,} items in all{split}, to {plain(str(output))}.")
    if load:
        say(f"Next: {plain(load)}")
