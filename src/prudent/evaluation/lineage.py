"""Whether lists may judge a policy: by what manifests say, it must not have learned from them.

A policy names what it learned from. What that was made of (a part of a log, the counts of one), and what the judging
log was cut from, stands in the manifests beside those files. Files may be written anew under the same name, so that a
name is only believed where the number of lists agrees as well.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prudent.files import manifest_path
from prudent.log import Log
from prudent.splitting import files_behind


def not_held_out(made: Mapping[str, Any], log: Log, lists: int) -> str:
    """Why these lists are no judges of a policy, by what it says of itself; nothing where there is no reason."""
    judges = files_behind(log.names) if log.in_files else set()  # tables in memory are all called alike
    for step, what in (("counts", "learned from"), ("mixed", "was mixed by")):
        said = made.get(step)
        if not isinstance(said, Mapping):
            continue
        learned = files_behind(_names(said))
        known = learned & judges
        if known and said.get("lists") == lists:
            return f"These are the lists that the policy {what}."
        if known and known < judges:
            return f"Among these are the lists that the policy {what}, in {min(known).name}."
        if known and known < learned:
            return f"These lists are among those that the policy {what}, in {min(known).name}."
        for source in _sources(judges):
            if source.file in learned and source.lists == said.get("lists"):
                return f"These lists were cut from {source.file.name}, all of which the policy {what}."
        for source in _sources(learned):
            if source.file in judges and (source.lists == lists or len(judges) > 1):
                return f"Among these are lists that the policy {what}: {source.made.name} was made of them."
    return ""


class _Source(NamedTuple):
    file: Path
    lists: int  # that it had
    made: Path  # of it


def _sources(files: set[Path]) -> Iterator[_Source]:
    """What files were made of, and what that was made of, by the manifests beside them."""
    known, rest = set(files), sorted(files)
    while rest:
        made = rest.pop()
        try:
            said = json.loads(manifest_path(made).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # there is none, or it is somebody else's
            continue
        if isinstance(said, Mapping):
            new = sorted(files_behind(_names(said)) - known)
            yield from (_Source(file, said.get("of_lists", said.get("lists")), made) for file in new)
            known.update(new)
            rest += new


def _names(said: Mapping[str, Any]) -> Iterator[str]:
    inputs = said.get("inputs", ())
    return (name for name in inputs if isinstance(name, str)) if isinstance(inputs, list | tuple) else iter(())
