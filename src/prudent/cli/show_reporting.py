"""What `prudent report` says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prudent.cli.terminal import plain, say


def show_report(data: Mapping[str, Any], output: Path) -> None:
    """The verdict, and where to read more."""
    change, explored = data["change"], data["contexts"]
    say(f"The gate says {'yes' if data['verdict']['passed'] else 'no'}: {plain(data['verdict']['why'])}")
    if not change["held_out"]:
        say("No context of the policy is in the held-out log, which does not tell what would change there.")
    elif change["differ"] is not None:
        say(f"{change['differ']:,} of {change['contexts']:,} lists differ from what was mostly shown.")
    say(f"{len(explored['shown']):,} of {explored['total']:,} contexts can be looked at one by one.")
    for note in explored["notes"]:
        say(plain(note))
    say(f"\nThe report is in {plain(str(output))} ({output.stat().st_size / 1e6:.1f} MB). Open it in a browser.")
