"""The click model of a policy with the parameters that were fitted to its training log, from its manifest."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from prudent.base.errors import PolicyError, UsageError
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.storage.manifest import Manifest

_OF_SCORES = ("prior", "groups", "features")


def fitted_parameters(manifest: Manifest) -> Mapping[str, Any]:
    """The fitted parameters of the click model, without those of what scores items."""
    fitted = manifest.results.get("fitted", {})
    return {name: values for name, values in fitted.items() if name not in _OF_SCORES}


def trained_model(manifest: Manifest, length: int) -> ClickModel | None:
    """The policy's click model with its fitted parameters as settings; None where it has none for this many positions.

    >>> made = Manifest("policy", {"model": "pbm"}, results={"fitted": {"examination": [1.0, 0.6], "prior": {}}})
    >>> str(trained_model(made, 2))
    'pbm(examination=[1, 0.6])'
    """
    fitted = fitted_parameters(manifest)
    try:
        model = click_models.parse(str(manifest.settings.get("model"))).pinned(fitted)
    except (UsageError, TypeError):  # made elsewhere, or by a model that is not installed
        return None
    return model if fitted and _positions(model, length) >= length else None


def model_of(manifest: Manifest, length: int, otherwise: str) -> FittedModel:
    """The fitted model under which the scores of a policy are read; the error says what to do `otherwise`."""
    spelled = manifest.settings.get("model")
    if spelled is None:
        raise PolicyError(f"The policy names no click model: {otherwise}.")
    model = trained_model(manifest, length)
    if model is None and fitted_parameters(manifest):
        raise PolicyError(
            "The policy was trained on shorter lists than those of this log, or by a click model that is not "
            f"installed: {otherwise}."
        )
    model = model or click_models.parse(str(spelled)).pinned({})
    return model.typical(_positions(model, length)).of_scores


def _positions(model: ClickModel, length: int) -> int:
    """How many positions the settings of a click model have parameters for: without any, as many as are asked for."""
    settings = {one.name: getattr(model, one.name) for one in fields(cast(Any, model))}
    return min((len(values) for values in model.curves(settings).values() if values), default=length)
