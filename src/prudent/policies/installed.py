"""Whether what a file of a policy names is installed here: other packages may have ranked it."""

from typing import Any

from prudent.base.errors import PolicyError
from prudent.base.spec import Registry


class NotInstalledError(PolicyError):
    """A policy names what another package has."""


def check_installed(registry: Registry[Any], spelling: str) -> None:
    """Raise where the name in a spelling is not registered; its settings, which may be damaged, are not read."""
    name = spelling.partition("(")[0]
    if name not in registry:
        raise NotInstalledError(f"No {registry.kind} is called {name!r:.100}.")
