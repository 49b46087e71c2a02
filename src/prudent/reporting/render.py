r"""From plain data to one HTML file that needs nothing else.

Names are hostile. They reach the page in two ways: as text, which jinja escapes, and inside a block of JSON that no
browser runs, in which ``<``, ``>``, ``&`` and ``'`` are written as ``\u003c`` and so on; the script puts them into the
page by `textContent` only. Should anything slip through, the content policy runs no script and no style but the two
whose hashes it names, and lets nothing be loaded from anywhere.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files as package_files
from typing import Any

from prudent.reporting.drawing import by_position, forest


def render(data: Mapping[str, Any]) -> str:
    """The page; the same data make the same bytes."""
    style, script = _own("style.css"), _own("script.js")
    positions, comparison = data["positions"], data["comparison"]
    estimates = data["estimates"]
    return str(
        _template().render(
            data=data,
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'",
            explored=data["contexts"],
            lifts=forest([(one["estimator"], one["lift_low"], one["lift"], one["lift_high"]) for one in estimates]),
            rates=by_position(positions["observed"], [("fitted", positions["fitted"])]),
            curve=by_position([], [(positions["curve"] or "", positions["values"])]),
            perplexity=None
            if comparison["why"]
            else by_position([], [(one["model"], one["by_position"]) for one in comparison["scores"]], floor_at=None),
        )
    )


def embedded(data: object) -> str:
    """JSON as it may stand in a page, whatever is in it."""
    from jinja2.utils import htmlsafe_json_dumps

    return str(htmlsafe_json_dumps(data, dumps=json.dumps, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("prudent.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "embedded": lambda data: Markup(embedded(data)),  # noqa: S704 (escaped there)
        "own": Markup,
        "percent": _percent,
        "signed": _signed,
        "short": _short,
        "count": lambda n: f"{n:,.0f}",
        "unbroken": lambda said: said.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0"),
    }
    return environment.get_template("report.html")


@cache
def _own(name: str) -> str:
    return package_files("prudent.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _percent(share: float | None, digits: int = 1) -> str:
    return "–" if share is None else f"{share:.{digits}%}"


def _signed(share: float | None, digits: int = 1) -> str:
    """With its sign, if it has one.

    >>> _signed(0.031), _signed(-0.5), _signed(-0.0001)
    ('+3.1%', '−50.0%', '0.0%')
    """
    if share is None:
        return "–"
    said = f"{share:+.{digits}%}".replace("-", "−")
    return said if said.strip("+−0.%") else said[1:]


def _short(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")
