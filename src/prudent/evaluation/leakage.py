"""Whether a log is a holdout for a policy, which must not be trained on any of its lists.

By content: the manifest of a policy has a digest of its training lists, and `prudent.evaluation.coincidence` tells
whether the log has the same ones, whatever its files are called.

By name: a policy names its training log. What that was made of (a part of a log, the counts of one), and what the log
was cut from, is in the manifests of those files. Files may be written anew under the same name, so that a name is only
believed where the number of lists agrees as well.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from prudent.base.errors import CountsError, ManifestError
from prudent.counts.days import span_of
from prudent.counts.lists import lists_below
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.coincidence import coincidence
from prudent.logs.files_behind import files_behind, recorded_files
from prudent.logs.formats import parquet_files
from prudent.logs.log import Log
from prudent.storage.counts_file import Piece
from prudent.storage.manifest import Manifest, Source

_ROLES = (("training", "learned from"), ("holdout", "was mixed by"))


def find_same_lists(policy: Manifest, engine: DuckDB, lists: Piece) -> str:
    """Why lists are no holdout for the policy with this manifest, by their content; empty where there is no reason."""
    for role, what in _ROLES:
        digest = policy.sources[role].digest if role in policy.sources else None
        if digest is None:
            continue
        with engine.connect() as connection, lists_below(connection, lists, digest.contexts):
            n, m = digest.counted(connection, "from lists")
        if not coincidence(n, m).shared:
            continue
        if (n == m).all():
            return f"These are the lists that the policy {what}."
        if (n <= m).all():
            return f"Among these are the lists that the policy {what}."
        if (n >= m).all():
            return f"These lists are among those that the policy {what}."
        return f"Some of these lists are those that the policy {what}: more of them agree than by chance."
    return ""


def unknown_origin(policy: Manifest) -> str:
    """Why nobody knows what a policy was trained on; empty where that is known."""
    if not policy.prudent:
        why = "it has no manifest"
    elif "training" not in policy.sources or policy.sources["training"].digest is None:
        why = "its manifest has no digest of the training lists"
    else:
        return ""
    return f"cannot tell where this policy comes from: {why}, so that the holdout may be its training log"


def find_leakage(policy: Manifest, log: Log, lists: int) -> str:
    """Why a log of so many lists is no holdout for the policy with this manifest; empty where there is no reason."""
    judges = files_behind(log.names) if log.in_files else set()  # tables in memory have no names of their own
    for role, what in _ROLES:
        if role in policy.sources and (reason := _overlap(policy.sources[role], judges, lists, what)):
            return reason
    return ""


def _overlap(source: Source, judges: set[Path], lists: int, what: str) -> str:
    """Why the files `judges`, which have so many lists, overlap with a source of a policy."""
    learned = {_merged(file) for file in recorded_files(source.inputs)}
    known = learned & judges
    if known and source.tally.lists == lists:
        return f"These are the lists that the policy {what}."
    if known and known < judges:
        return f"Among these are the lists that the policy {what}, in {min(known).name}."
    if known and known < learned:
        return f"These lists are among those that the policy {what}, in {min(known).name}."
    for origin in _origins(judges):
        if origin.file in learned and origin.lists == source.tally.lists:
            return f"These lists were cut from {origin.file.name}, all of which the policy {what}."
    for origin in _origins(learned):
        if origin.file in judges and (origin.lists == lists or len(judges) > 1 or not origin.alone):
            return f"Among these are lists that the policy {what}: {origin.made.name} was made of them."
    for train in learned:
        manifest = _manifest(train)
        if manifest is None or manifest.settings.get("part") != "train":
            continue
        whole = recorded_files(_inputs(manifest))
        for judge in sorted(judges):
            other = _manifest(judge)
            if other is None or not whole & recorded_files(_inputs(other)):
                continue
            if manifest.results.get("lists") != source.tally.lists:
                return (
                    f"{train.name} was split off anew since the policy {what} it: lists in {judge.name} may be "
                    "among those."
                )
            if other.kind == "split" and other.settings.get("id") != manifest.settings.get("id"):
                return f"{train.name} and {judge.name} are parts of different splits: lists may be in both."
    return ""


def _merged(file: Path) -> Path:
    """The file itself or, where it was a day of counts that was merged since, the file that has it now."""
    if os.path.exists(file):
        return file
    try:
        place = span_of(file)
        if place is None or not os.path.isdir(place[0]):
            return file
        folder, day = place
        for other in parquet_files(folder):
            now = span_of(other)
            if now is not None and now[0] == folder and now[1].first <= day.first and day.last <= now[1].last:
                return other
    except CountsError:  # folders that are called day=..., but have no counts in them
        pass
    return file


class _Origin(NamedTuple):
    """A file that another was made from."""

    file: Path
    lists: int  # that it had, together with the others where it is not alone
    made: Path  # from it
    alone: bool


def _origins(files: set[Path]) -> Iterator[_Origin]:
    """The files that these were made from, and those that they were made from, by the manifests beside them."""
    known, rest = set(files), sorted(files)
    while rest:
        made = rest.pop()
        manifest = _manifest(made)
        if manifest is None or "log" not in manifest.sources:
            continue
        inputs = recorded_files(_inputs(manifest))
        new = sorted(inputs - known)
        lists = manifest.sources["log"].tally.lists
        yield from (_Origin(file, lists, made, len(inputs) == 1) for file in new)
        known.update(new)
        rest += new


def _manifest(file: Path) -> Manifest | None:
    """The manifest beside a file; None where there is none, or that of another program."""
    with suppress(ManifestError):
        return Manifest.read(file)
    return None


def _inputs(manifest: Manifest | None) -> Sequence[str]:
    return manifest.sources["log"].inputs if manifest is not None and "log" in manifest.sources else ()
