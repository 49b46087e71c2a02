"""What a policy promised its lists would earn: the value of their items' estimates, and how far off that may be."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import PolicyError, UsageError
from prudent.click_models.rewards import ObservedReward
from prudent.evaluation.holdout_log import HoldoutLog
from prudent.policies.list_bound import squared_gap
from prudent.policies.trained_model import model_of

_OTHERWISE = "name the reward per list that it promised, promised=..."


@dataclass(frozen=True)
class Promise:
    """Of each context of a log: whether the policy has a list there, and what that is promised to earn."""

    known: BoolArray
    value: FloatArray  # reward per list
    deviation: FloatArray  # standard deviation of the posterior of that


def promise_of(holdout: HoldoutLog, reward: ObservedReward) -> Promise:
    """The promise of a policy that `prudent.rank` wrote, for the contexts of a log.

    The value of a list is that of the estimates of its items under the click model with its fitted parameters. Its
    deviation follows from the lower bounds, which are quantiles of the posterior (`prudent.policies.list_bound`);
    errors that lists share, such as those of the click model, are not in it.
    """
    held, manifest = holdout.lists, holdout.policy.manifest
    if holdout.policy.reward:
        raise PolicyError(
            f"The policy promises a reward, {holdout.policy.reward}, and not {reward}: name the {reward} per list that "
            "it promised, promised=...."
        )
    found = holdout.connection.execute(
        "select contexts.rowid as number, rank - 1 as place, mean, lower from policy join contexts using (context) "
        f"where rank <= {held.length:d}"
    ).fetchnumpy()
    fitted = model_of(manifest, held.length, _OTHERWISE)
    number, place = found["number"], found["place"]
    if np.ma.is_masked(found["mean"]) or np.isnan(np.ma.getdata(found["mean"])).any():
        raise PolicyError("The policy has no estimates: name the reward per list that it promised, promised=....")
    mean, gap = np.zeros((2, held.contexts, held.length))
    mean[number, place] = np.clip(found["mean"], 0, 1)
    gap[number, place] = mean[number, place] - np.clip(found["lower"], 0, 1)
    inside = np.arange(held.length) < held.upto[:, None]
    mean, gap = mean * inside, gap * inside
    try:
        value = fitted.value(mean, reward)
        squares = squared_gap(lambda theta: fitted.value(theta, reward), mean, gap)
    except UsageError as error:
        raise PolicyError(f"The policy does not promise {reward}: {error}") from error
    level = manifest.results.get("summary", {}).get("level")
    quantile = float(ndtri(level)) if level is not None and level > 0.5 else 0.0
    deviation = np.sqrt(squares) / quantile if quantile else np.zeros(len(value))
    return Promise(held.known, value, deviation)
