"""Errors and warnings. Each message states what is wrong, where, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class PrudentError(Exception):
    """Base class of all errors of prudent.

    >>> import prudent
    >>> try:
    ...     prudent.Policy.read("nowhere.parquet")
    ... except prudent.PrudentError as error:
    ...     print(type(error).__name__)
    LogError
    """

    exit_code = 3


class UsageError(PrudentError, ValueError):
    """Wrong usage, whatever the data: an unknown name, a value out of range."""

    exit_code = 2


class LogError(PrudentError):
    """The log cannot be read, or too many of its lists are rejected."""


class LabelError(PrudentError):
    """A file of relevance labels cannot be read, or has unknown labels."""


class CountsError(PrudentError):
    """A file of counts cannot be read, or cannot be added to the others."""


class PolicyError(PrudentError):
    """A file of a policy cannot be read, or lacks what is needed."""


class RulesError(PrudentError):
    """Business rules cannot be read, or contradict each other."""


class ManifestError(PrudentError):
    """A manifest beside an output is damaged, or of another program or version."""


class NotIdentifiedError(PrudentError):
    """The log does not identify a parameter, however long it is; ``parameter`` names the setting that would."""

    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class UnknownContextError(PrudentError, KeyError):
    """The policy has no list for this context."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class WriteError(PrudentError):
    """The output cannot be written; what was there before is unchanged."""

    exit_code = 4


class PrudentWarning(UserWarning):
    """What a reader of the result should know.

    >>> import prudent, pyarrow as pa, warnings
    >>> log = pa.table({"context": ["shoes"] * 30, "items": [["i1", "i2"]] * 30, "clicks": [[0, 1]] * 30})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", prudent.PrudentWarning)
    ...     try:
    ...         prudent.rank(log)
    ...     except prudent.PrudentWarning as warning:
    ...         print(str(warning).partition(":")[0])
    pbm is not identified
    """


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the end of a message about an unknown name; empty if no known name is similar.

    >>> did_you_mean("bays", ["bayes", "mle"])
    " Did you mean 'bayes'?"
    """
    known = list(known)
    folded = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), folded, n=1)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""
