"""Charts: readable on light and dark pages, files on white, the same bytes for the same chart."""

import sys
from typing import Any

import altair as alt
import pytest

from prudent.base.chart import DASHES, check_chart, figure, inline, line_panel, render_chart, styles_of, to_svg
from prudent.base.errors import UsageError


def drawn(name: str = "pbm") -> Any:
    rows = [{"series": name, "x": x, "y": x / 4, "low": 0.0, "high": 0.5} for x in (1, 2)]
    words = inline([{"label": name}]).mark_text().encode(text="label:N")
    return figure([line_panel(rows, styles_of([name]), x=alt.X("x:Q"), y="rate"), words], "Title", ["note"], 300)


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_notebook_shows_it_on_its_own_background() -> None:
    spec = drawn().to_dict()
    config = spec["config"]
    assert spec["background"] == "transparent"
    texts = [config["title"]["color"], config["title"]["subtitleColor"], config["axis"]["labelColor"]]
    texts += [config["axis"]["titleColor"], config["legend"]["labelColor"], config["text"]["color"]]
    for colour in texts:
        assert contrast(colour, "#ffffff") > 4
        assert contrast(colour, "#111111") > 4


def test_lines_are_visible_on_light_and_dark() -> None:
    for style in styles_of([str(i) for i in range(20)]).values():
        assert contrast(style.colour, "#ffffff") > 2
        assert contrast(style.colour, "#111111") > 3


def test_files_are_white() -> None:
    picture = to_svg(drawn())
    assert 'fill="white"' in picture
    assert "#7b7b7b" not in picture
    assert "#333333" in picture


def test_files_by_their_ending() -> None:
    picture = render_chart(drawn(), "a.svg")
    assert picture.startswith(b"<svg")
    assert render_chart(drawn(), "a.svg") == picture
    assert render_chart(drawn(), "a.PNG").startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="neither"):
        check_chart("a.pdf")


def test_names_are_text() -> None:
    picture = to_svg(drawn("<script>\x1b"))
    assert "<script" not in picture
    assert "\x1b" not in picture


def test_many_series_differ_in_more_than_colour() -> None:
    styles = styles_of([str(i) for i in range(24)])
    assert len(set(styles.values())) == 24
    assert styles["6"].dash == DASHES[1]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match="pip install 'prudent\\[report\\]'"):
        check_chart("a.svg")
