"""One family of errors: each message says what was found and what to do about it."""

from collections.abc import Iterable
from difflib import get_close_matches


class PrudentError(Exception):
    """Anything prudent refuses to do; catch this one to catch them all."""

    exit_code = 3


class UsageError(PrudentError, ValueError):
    """A setting that no log could make right: an unknown name, a value out of range."""

    exit_code = 2


class LogError(PrudentError):
    """The log cannot be read, or too much of it is wrong."""


class LabelError(PrudentError):
    """A file of relevance labels cannot be read, or has labels that nobody knows the meaning of."""


class CountsError(PrudentError):
    """A counts file cannot be read, or does not fit the others."""


class PolicyError(PrudentError):
    """A policy file cannot be read, or does not hold what was asked of it."""


class ManifestError(PrudentError):
    """A manifest beside an output is damaged, or of another program or version."""


class NotIdentifiedError(PrudentError):
    """The log does not determine a parameter, however long it is."""


class UnknownContextError(PrudentError, KeyError):
    """The policy has no list for this context."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class WriteError(PrudentError):
    """The output could not be written; what was there before is untouched."""

    exit_code = 4


class PrudentWarning(UserWarning):
    """Something the reader of a result should know."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint that ends a message about an unknown name, or nothing when no name is near.

    >>> did_you_mean("bays", ["bayes", "mle"])
    " Did you mean 'bayes'?"
    """
    known = list(known)
    folded = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), folded, n=1)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""
