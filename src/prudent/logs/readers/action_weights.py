"""What actions are worth, such as ``click=1, cart=3, purchase=10``."""

from collections.abc import Mapping

from prudent.base.errors import UsageError
from prudent.base.spec import check_number
from prudent.logs.log import MOST_REWARD

_EXAMPLE = "in this format it says what actions are worth: 'click=1, cart=3, purchase=10'."


def weights_of(reward: str | Mapping[str, float]) -> dict[str, float]:
    """The worth of each action, from text or as it is.

    >>> weights_of("click=1, cart=3")
    {'click': 1.0, 'cart': 3.0}
    """
    if not isinstance(reward, str | Mapping):
        raise UsageError(f"reward is {reward!r}; {_EXAMPLE}")
    parts = _parts(reward) if isinstance(reward, str) else list(reward.items())
    weights: dict[str, float] = {}
    for action, weight in parts:
        if not isinstance(action, str) or not action:
            raise UsageError(f"reward names the action {action!r}; {_EXAMPLE}")
        if action in weights:
            raise UsageError(f"reward names the action {action!r} twice.")
        check_number(f"The reward of {action!r}", weight, least=0, most=MOST_REWARD, example="10")
        weights[action] = float(weight)
    if sum(weights.values()) > MOST_REWARD:
        raise UsageError(f"An item may earn at most {MOST_REWARD:,}, all actions together: choose a larger unit.")
    if not any(weights.values()):
        raise UsageError("No action is worth anything: reward (--reward) is such as 'click=1, cart=3, purchase=10'.")
    return weights


def spelled(weights: Mapping[str, float]) -> str:
    """The text that these weights are read from, in one order: days with the same weights add up.

    >>> spelled({"click": 1.0, "cart": 2.5})
    'cart=2.5, click=1'
    """
    return ", ".join(f"{action}={str(weight).removesuffix('.0')}" for action, weight in sorted(weights.items()))


def _parts(reward: str) -> list[tuple[str, float]]:
    parts = []
    for part in reward.split(","):
        action, sign, number = (one.strip() for one in part.rpartition("="))
        try:
            weight = float(number)
        except ValueError:
            sign = ""
        if not (action and sign):
            raise UsageError(f"reward is {reward!r}; {_EXAMPLE}")
        parts.append((action, weight))
    return parts
