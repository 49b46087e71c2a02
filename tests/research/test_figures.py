"""Figures are read by eye; here is what a reader must find in them, and what no row may do to them."""

import math
import struct
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prudent.base.chart import to_svg
from prudent.base.errors import UsageError, WriteError
from prudent.research import drawing, figures
from prudent.research.table import Row

METHODS = {
    "mle": 1.0,
    "bayes": 0.6,
    "eb": 0.5,
    "hoeffding": 0.8,
    "exposure": 0.4,
    "ips": 10.0,
    "ip-ips": 1.4,
    "pi": 1.2,
}


def row(**settings: Any) -> Row:
    usual: dict[str, Any] = {"data": "top 10 queries", "logging": "uniform", "model": "cm", "method": "bayes"}
    usual |= {"delta": 0.2, "n": 1000, "error": 0.05, "se": 0.001, "repetitions": 500}
    return Row(**usual | settings)


def sweep(models: Iterable[str] = ("cm", "pbm"), **settings: Any) -> list[Row]:
    """All methods at three δ, with errors that are multiples of the MLE's 0.05."""
    return [
        row(model=model, method=method, delta=delta, error=0.05 * times, **settings)
        for model in models
        for method, times in METHODS.items()
        for delta in ([None] if method in ("mle", "pi") else [0.1, 0.5, 1.0])
    ]


def drawn(chart: Any) -> list[str]:
    """All texts of the SVG, in order; that it parses is a test of its own."""
    return [text.strip() for text in ElementTree.fromstring(to_svg(chart)).itertext() if text.strip()]


def test_a_reader_finds_axes_panels_legend_and_numbers() -> None:
    texts = drawn(figures.against_delta(sweep(), "Error against δ", "Clicks are simulated."))
    assert {"Error against δ", "Clicks are simulated.", "δ", "error V(A*) − V(Â)"} <= set(texts)
    assert {"cm", "pbm", *METHODS} <= set(texts)
    assert "top 10 queries; logging policy: uniform; n = 1,000 lists per context; 500 repetitions" in texts
    assert "Shaded: ± one standard error of the mean." in texts
    assert [texts.count(method) for method in METHODS] == [1] * len(METHODS)  # one legend for all panels


def test_what_is_out_of_the_frame_is_named_with_its_numbers() -> None:
    texts = drawn(figures.against_delta(sweep(), "Error"))
    assert texts.count("▲ above the frame: ips (0.5)") == 2


def test_without_a_rival_out_of_frame_nothing_is_noted() -> None:
    rows = [one for one in sweep() if one.method != "ips"]
    assert not any("frame" in text for text in drawn(figures.against_delta(rows, "Error")))


def test_a_mean_without_a_number_is_named() -> None:
    rows = [*sweep(["cm"]), row(method="other", error=math.nan, se=math.nan), row(method="once", se=math.nan)]
    texts = drawn(figures.against_delta(rows, "Error"))
    assert "no number: other" in texts
    assert "once" in texts


def test_each_logging_policy_and_n_is_a_row_of_panels() -> None:
    rows = sweep() + sweep(logging="production", n=20000)
    texts = drawn(figures.against_delta(rows, "Error"))
    assert {
        "logging policy: uniform, n = 1,000 lists per context",
        "logging policy: production, n = 20,000 lists per context",
    } <= (set(texts))
    assert "top 10 queries; 500 repetitions" in texts
    assert texts.count("pbm") == 2


def test_panels_share_a_scale_unless_one_would_be_flat() -> None:
    alike = sweep(["cm"]) + [replace(one, error=2 * one.error) for one in sweep(["pbm"])]
    apart = sweep(["cm"]) + [replace(one, error=9 * one.error) for one in sweep(["pbm"])]
    own = "only where their errors are of one size"
    assert own not in " ".join(drawn(figures.against_delta(alike, "Error")))
    assert own in " ".join(drawn(figures.against_delta(apart, "Error")))


def test_a_panel_without_rows_says_so() -> None:
    rows = [*sweep(["cm"]), *sweep(["pbm"], logging="production")]
    assert drawn(figures.against_delta(rows, "Error")).count("no rows") == 2


def test_gain_against_n() -> None:
    rows = [
        row(model=model, method=method, n=n, error=gain, repetitions=n // 10)
        for model in ("cm", "pbm")
        for method, gain in (("bayes", 0.02), ("ips", -0.5))
        for n in (50, 500, 5000, 50000)
    ]
    texts = drawn(figures.against_n(rows, "Gain"))
    assert {"error(MLE) − error(method)", "n, lists per context (log scale)", "no difference to MLE"} <= set(texts)
    assert {"100", "1k", "10k"} <= set(texts)
    assert "top 10 queries; logging policy: uniform; δ = 0.2; 5 to 5,000 repetitions" in texts
    assert texts.count("▼ below the frame: ips (−0.5)") == 2


def test_one_n_is_a_figure_too() -> None:
    assert "700" in drawn(figures.against_n([row(n=700)], "Gain"))


def test_share_of_the_mle_against_quality() -> None:
    quality = {"uniform": 0.0, "good": 0.8}
    rows = [one for logging in quality for one in sweep(logging=logging) if one.delta in (None, 0.5)]
    texts = drawn(figures.against_logging(rows, "Quality", quality=quality, axis="quality γ"))
    assert {"quality γ", "error as a share of MLE’s", "as good as MLE"} <= set(texts)
    assert "mle" not in texts  # it is the line at 1
    assert "top 10 queries; n = 1,000 lists per context; δ = 0.5; 500 repetitions" in texts
    assert texts.count("▲ above the frame: ips (10)") == 2


def test_share_of_the_mle_needs_the_mle_and_the_quality() -> None:
    with pytest.raises(UsageError, match="no row of mle for cm under 'uniform'"):
        figures.against_logging([row()], "Quality", quality={"uniform": 0.0})
    with pytest.raises(UsageError, match="no quality for the logging policy 'uniform'"):
        figures.against_logging([row()], "Quality", quality={"good": 0.8})


def test_share_of_an_mle_without_error_has_no_number() -> None:
    rows = [row(method="mle", delta=None, error=0.0), row()]
    assert "no number: bayes" in drawn(figures.against_logging(rows, "Quality", quality={"uniform": 0.0}))


def test_dots_keep_the_order_and_write_what_is_out_of_the_frame() -> None:
    given = ["ips", "mle", "eb", "eb(grid=[1, 2])", "dcm(tail=truncate)", "bayes"]
    rows = [
        row(model=model, method=method, error=math.nan if method == "bayes" else 0.6 if method == "ips" else 0.05)
        for model in ("cm", "pbm")
        for method in given
    ]
    texts = drawn(figures.dots(rows, "Readings"))
    assert [text for text in texts if text in given] == given
    assert texts.count("0.6 →") == texts.count("no number") == 2 * 2  # twice for a white rim around the letters


def test_several_delta_are_part_of_the_name() -> None:
    rows = [row(method="mle", delta=None), row(delta=0.2), row(delta=0.5), row(method="exposure", delta=0.5)]
    texts = drawn(figures.dots(rows, "Defaults"))
    assert {"mle", "bayes, δ = 0.2", "bayes, δ = 0.5", "exposure, δ = 0.5"} <= set(texts)


def test_a_method_looks_the_same_in_every_figure_and_no_two_look_alike() -> None:
    variants = [f"eb(grid=[{i}])" for i in range(4)]
    few, many = [row(method="eb")], [row(method=method) for method in [*variants, "new", "newer(x=1)", *METHODS]]
    styles = drawing.make_styles(many, lambda one: one.method)
    assert styles["eb"] == drawing.make_styles(few, lambda one: one.method)["eb"] == drawing.STYLES["eb"]
    assert len({style.colour for style in styles.values()}) == len(styles)
    assert len({(style.shape, style.dash) for style in drawing.STYLES.values()}) == len(drawing.STYLES)


@pytest.mark.parametrize("rows", [sweep(["cm"]), sweep() + sweep(logging="production")])
def test_png_has_the_size_of_a_figure(rows: list[Row], tmp_path: Path) -> None:
    _, png = figures.save(figures.against_delta(rows, "Error"), tmp_path / "figure")
    content = png.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert 600 < width < 2400
    assert 600 < height < 2400


def test_same_rows_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        figures.save(figures.against_delta(sweep(), "Error"), tmp_path / name)
    for suffix in ("svg", "png"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script> \"quotes\" & 'more' nul\x00 bell\x07 line\nend \ud800\u202e", "x" * 500, ""]
)
def test_names_are_text_and_nothing_else(name: str) -> None:
    """Control characters must not reach vl-convert at all: they abort the process, test runner included."""
    rows = [
        row(data=name, logging=name, model=name, method=name),
        row(data=name, logging=name, model=name, method="mle", delta=None),
    ]
    for chart in (
        figures.against_delta(rows, name, name),
        figures.against_n(rows, name, name),
        figures.against_logging(rows, name, name, quality={name: 1.0}),
        figures.dots(rows, name, name),
    ):
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(to_svg(chart)).iter()}
        assert tags <= {"svg", "g", "path", "text", "tspan", "rect", "defs", "clipPath", "line"}


def test_hostile_names_are_shown_as_they_are() -> None:
    texts = drawn(figures.dots([row(method="<script>alert('1')</script>\x07")], "Readings"))
    assert r"<script>alert('1')</script>\x07" in texts


def test_names_of_files_keep_their_dots(tmp_path: Path) -> None:
    paths = figures.save(figures.against_delta(sweep(["cm"]), "Error"), tmp_path / "delta-0.2")
    assert paths == (tmp_path / "delta-0.2.svg", tmp_path / "delta-0.2.png")
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="there is no folder"):
        figures.save(figures.against_delta(sweep(["cm"]), "Error"), tmp_path / "none" / "figure")


def test_rows_that_no_figure_can_show() -> None:
    with pytest.raises(UsageError, match="no rows"):
        figures.against_delta([], "Error")
    with pytest.raises(UsageError, match="several rows for 'bayes'"):
        figures.against_delta([row(), row(error=0.1)], "Error")


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_the_extra_the_message_says_how_to_get_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"pip install 'prudent\[report\]'"):
        figures.against_delta(sweep(), "Error")
