"""Whether lists may judge a policy: by what manifests say, it must not have learned from them.

A policy names what it learned from. What that was made of (a part of a log, the counts of one), and what the judging
log was cut from, stands in the manifests beside those files. Files may be written anew under the same name, so that a
name is only believed where the number of lists agrees as well.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prudent.base.errors import CountsError
from prudent.counts.days import span_of
from prudent.counts.split import files_behind
from prudent.logs.formats import parquet_files
from prudent.logs.log import Log
from prudent.storage.files import manifest_path


def not_held_out(made: Mapping[str, Any], log: Log, lists: int) -> str:
    """Why these lists are no judges of a policy, by what it says of itself; nothing where there is no reason."""
    judges = files_behind(log.names) if log.in_files else set()  # tables in memory are all called alike
    for step, what in (("counts", "learned from"), ("mixed", "was mixed by")):
        said = made.get(step)
        if not isinstance(said, Mapping):
            continue
        learned = {_merged(file) for file in files_behind(_names(said))}
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
            if source.file in judges and (source.lists == lists or len(judges) > 1 or not source.alone):
                return f"Among these are lists that the policy {what}: {source.made.name} was made of them."
        for train in learned:
            cut = _manifest(train)
            if cut.get("part") == "train" and cut.get("lists") != said.get("lists"):
                whole = files_behind(_names(cut))
                for judge in sorted(judges):
                    if whole & files_behind(_names(_manifest(judge))):
                        return (
                            f"{train.name} was split off anew since the policy {what} it: lists in {judge.name} may be "
                            "among those."
                        )
    return ""


def _merged(file: Path) -> Path:
    """The file itself or, where it was a day of counts that was merged since, the file that has it now."""
    if file.exists():
        return file
    try:
        place = span_of(file)
        if place is None or not place[0].is_dir():
            return file
        folder, day = place
        for other in parquet_files(folder):
            now = span_of(other)
            if now is not None and now[0] == folder and now[1].first <= day.first and day.last <= now[1].last:
                return other
    except CountsError:  # folders that are called day=..., but have no counts in them
        pass
    return file


class _Source(NamedTuple):
    file: Path
    lists: int  # that it had, together with the others where it is not alone
    made: Path  # of it
    alone: bool


def _sources(files: set[Path]) -> Iterator[_Source]:
    """What files were made of, and what that was made of, by the manifests beside them."""
    known, rest = set(files), sorted(files)
    while rest:
        made = rest.pop()
        said = _manifest(made)
        of = files_behind(_names(said))
        new = sorted(of - known)
        lists = said.get("of_lists", said.get("lists"))
        yield from (_Source(file, lists, made, len(of) == 1) for file in new)
        known.update(new)
        rest += new


def _manifest(file: Path) -> Mapping[str, Any]:
    """What lies beside a file; nothing where there is nothing, or somebody else's."""
    try:
        said = json.loads(manifest_path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, Mapping) else {}


def _names(said: Mapping[str, Any]) -> Iterator[str]:
    inputs = said.get("inputs", ())
    return (name for name in inputs if isinstance(name, str)) if isinstance(inputs, list | tuple) else iter(())
