"""Whether the lists of a holdout were selected after they were logged, so that they do not stand for all of them.

Three signs:

1. A part of `prudent split` has fewer or more lists than its manifest says.
2. Lists were rejected, more than one in a hundred: a fault of the log may follow the clicks.
3. Contexts are missing. A policy has impressions of its items in the training log: of a context at most as many as it
   had lists. If N such impressions and the M lists here are of one production, a context of which n were seen is on
   the one side alone with probability ``(N/(N + M))ⁿ``. The share of impressions in missing contexts may exceed its
   expectation by 4 standard errors and `MOST_MISSING`, for contexts come and go.

Lists that were left out within contexts, because of their clicks, leave no sign.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import ManifestError
from prudent.base.text import percent
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.logs.files_behind import files_behind
from prudent.logs.log import Log
from prudent.policies.policy import Policy
from prudent.storage.arrow_tables import registered
from prudent.storage.manifest import Manifest, Tally
from prudent.storage.run import NameColumn

MOST_MISSING = 0.1
"""The share of training impressions in missing contexts, beyond chance, above which a holdout is a selection."""
MOST_ERRORS = 4.0
"""Standard errors by which that share may exceed its expectation."""


def find_selection(policy: Policy, contexts: NameColumn, log: Log, tally: Tally, lists: int) -> str:
    """Why lists are a selection; empty where there is no sign of it.

    `contexts` are those of the log; `lists` is how many of it are of contexts that the policy knows.
    """
    return "; ".join(filter(None, (_cut(log, tally), _rejected(tally), _missing(policy, contexts, lists))))


def _cut(log: Log, tally: Tally) -> str:
    """By the manifests of parts, where all files are parts."""
    if not log.in_files:
        return ""
    parts = [_manifest(file) for file in sorted(files_behind(log.names))]
    sizes = [part.results.get("lists") for part in parts if part is not None and part.kind == "split"]
    known = [size for size in sizes if isinstance(size, int)]
    if not parts or len(known) < len(parts):
        return ""
    recorded, now = sum(known), tally.lists + tally.rejected_lists
    if abs(now - recorded) <= MAX_REJECTED * recorded:
        return ""
    return f"prudent split wrote {recorded:,} lists into this part, and it has {now:,}; split the log again"


def _manifest(file: Path) -> Manifest | None:
    with suppress(ManifestError):  # that of another program
        return Manifest.read(file)
    return None


def _rejected(tally: Tally) -> str:
    if tally.share_rejected <= MAX_REJECTED:
        return ""
    return (
        f"{percent(tally.share_rejected)} of the lists were rejected ({'; '.join(tally.reasons)}), and the others may "
        "differ from them; fix them"
    )


def _missing(policy: Policy, contexts: NameColumn, lists: int) -> str:
    seen_in_training = (
        "select context::varchar as context, max(impressions)::double as impressions from "
        f"({policy.lists().sql_query()}) group by all having max(impressions) > 0"
    )
    with registered(policy.connection, "held_out", [{"context": contexts.column}]):
        found = policy.connection.execute(
            "select impressions, name is not null as there from "
            f"({seen_in_training}) left join (select context::varchar as name from held_out) on context = name "
            "order by impressions"
        ).fetchnumpy()
    if not len(found["impressions"]):
        return ""  # lists of another ranker
    seen: FloatArray = found["impressions"]
    share, chance = seen / seen.sum(), (seen.sum() / (seen.sum() + lists)) ** seen
    missing, expected = float(share[~found["there"].astype(bool)].sum()), float(np.sum(share * chance))
    error = float(np.sum(share**2 * chance * (1 - chance))) ** 0.5
    if missing <= expected + MOST_MISSING + MOST_ERRORS * error:
        return ""
    return (
        f"contexts with {percent(missing)} of the policy's training impressions are missing, {percent(expected)} by "
        "chance: the lift is that of the other contexts; hold out lists of all contexts"
    )
