"""The click model of a policy with the parameters that were fitted to its training log, from its manifest."""

from dataclasses import fields, replace
from typing import Any

from prudent.base.errors import PolicyError, UsageError
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.storage.manifest import Manifest


def trained_model(manifest: Manifest, length: int) -> ClickModel | None:
    """The policy's click model with its fitted parameters as settings; None where it has none for this many positions.

    >>> made = Manifest("policy", {"model": "pbm"}, results={"fitted": {"examination": [1.0, 0.6], "prior": {}}})
    >>> str(trained_model(made, 2))
    'pbm(examination=[1, 0.6])'
    """
    spelled, fitted = manifest.settings.get("model"), manifest.results.get("fitted", {})
    try:
        model: Any = click_models.parse(str(spelled))
        known = {one.name: fitted[one.name] for one in fields(model) if one.name in fitted}
        enough = known and all(len(values) >= length for values in known.values())
        return replace(model, **known) if enough else None
    except (UsageError, TypeError):  # made elsewhere, or by a model that is not installed
        return None


def model_of(manifest: Manifest, length: int, otherwise: str) -> FittedModel:
    """The same with the settings of a model that has nothing to fit; the error says what to do `otherwise`."""
    spelled = manifest.settings.get("model")
    if spelled is None:
        raise PolicyError(f"The policy names no click model: {otherwise}.")
    fitted = {name for name in manifest.results.get("fitted", {}) if name not in ("prior", "groups")}
    model = trained_model(manifest, length)
    if model is None and fitted:
        raise PolicyError(
            "The policy was trained on shorter lists than those of this log, or by a click model that is not "
            f"installed: {otherwise}."
        )
    return (model or click_models.parse(str(spelled))).typical(length)
