r"""From plain data to one HTML file that needs nothing else.

Names are untrusted and always escaped. They reach the page as text, which jinja escapes, and in a block of JSON that no
browser runs, where ``<``, ``>``, ``&`` and ``'`` are written as ``\u003c`` and so on; the script inserts them by
`textContent` only. As a second defence, the content security policy allows no script and no style but the two whose
hashes it names, and loads nothing; only where the user asks for images of other servers, it allows images.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files as package_files
from math import floor, log10
from typing import Any

from prudent.base.text import number, percent, several
from prudent.reporting.charts import by_position, forest


def render(data: Mapping[str, Any]) -> str:
    """The page; the same data make the same bytes."""
    style, script = _template_text("style.css"), _template_text("script.js")
    positions, comparison = data["positions"], data["comparison"]
    estimates = data["estimates"]
    return str(
        _template().render(
            data=data,
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            f"img-src data:{' https: http:' if data['labels']['remote_images'] else ''}; base-uri 'none'; "
            "form-action 'none'",
            explored=data["contexts"],
            lifts=forest([(one["estimator"], one["lift_low"], one["lift"], one["lift_high"]) for one in estimates]),
            rates=by_position(positions["observed"], [("predicted", positions["fitted"])]),
            curve=by_position([], list(positions["parameters"].items())),
            perplexity=None
            if comparison["why"]
            else by_position([], [(one["model"], one["by_position"]) for one in comparison["scores"]], floor_at=None),
        )
    )


def embedded(data: object) -> str:
    """JSON that is safe inside a page."""
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
        "percent": percent,
        "signed": lambda share: percent(share, signed=True),
        "short": number,
        "per_hundred": lambda rate: number(100 * rate, max(1, _decimals(100 * rate))),
        "amount": lambda total: number(total, _decimals(total)),
        "change": lambda total: number(total, _decimals(total), signed=True),
        "chance": lambda share: f"below {percent(0.01, 0)}" if share < 0.01 else percent(share, 0),
        "several": several,
        "count": lambda n: number(n, 0),
        "unbroken": lambda text: text.replace(" ± ", "\u00a0±\u00a0"),
    }
    return environment.get_template("report.html")


def _decimals(total: float) -> int:
    """So many that two digits show, of rewards that are rare too."""
    return max(0, min(6, 1 - floor(log10(abs(total))))) if total else 1


@cache
def _template_text(name: str) -> str:
    return package_files("prudent.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
