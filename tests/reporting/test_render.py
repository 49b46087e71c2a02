"""From data to a page: no name becomes markup, and the same data make the same bytes."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.text import visible
from prudent.evaluation.evaluate import Evaluation
from prudent.reporting import render
from prudent.reporting.charts import by_position, forest, nice
from prudent.reporting.render import embedded
from tests.reference import LoggedList
from tests.reporting.hostile import PAYLOADS
from tests.reporting.small import GOOD, MANIFEST, NO, summary
from tests.strategies import count

DATA = summary()


class Census(HTMLParser):
    """What a parser of HTML finds in a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def named(name: str) -> str:
    """The page with this name wherever one can be."""
    data = json.loads(json.dumps(DATA))
    data["title"] = name
    data["contexts"]["shown"][0]["name"] = name
    for row in data["contexts"]["shown"][0]["rows"]:
        row[0] = name
    for one in data["contexts"]["fallen"]["first"]:
        one["context"] = one["item"] = name
    data["contexts"]["notes"] = data["health"]["verdicts"] = [name]
    data["health"]["rejected"] = data["health"]["left_out"] = [[name, 1]]
    data["settings"] = [[name, name]]
    data["verdict"]["why"] = data["estimates"][0]["why"] = data["estimates"][0]["estimator"] = name
    data["comparison"]["verdict"] = data["comparison"]["scores"][0]["why"] = name
    data["comparison"]["scores"][0]["model"] = data["positions"]["model"] = data["promises"][0] = name
    return render(data)


PLAIN = Census(named("plain"))


@pytest.mark.parametrize("name", [*PAYLOADS, "a\0b"])
def test_no_name_becomes_markup(name: str) -> None:
    for text in (name, visible(name)):  # the page holds by itself, whatever it is handed
        actual = Census(named(text))
        assert actual.tags == PLAIN.tags
        assert [key for key, _ in actual.attributes] == [key for key, _ in PLAIN.attributes]


@settings(max_examples=100)
@given(name=st.text(st.characters(exclude_categories=["Cs"])) | st.text("<>&'\"/!-{}%#`$\\= sript"))
def test_no_text_becomes_markup(name: str) -> None:
    actual = Census(named(name))
    assert actual.tags == PLAIN.tags
    assert [key for key, _ in actual.attributes] == [key for key, _ in PLAIN.attributes]


@given(text=st.text() | st.text("<>&'/!-scriptSCRIPT"))
def test_embedded_json_reads_back_and_cannot_end_its_block(text: str) -> None:
    if any(0xD800 <= ord(c) < 0xE000 for c in text):
        return
    written = embedded({"name": text})
    assert not set(written) & set("<>&'")
    assert json.loads(written) == {"name": text}


def test_the_same_data_make_the_same_bytes() -> None:
    assert render(DATA) == render(summary())


def test_the_content_policy_names_the_one_script_and_the_one_style() -> None:
    page = render(DATA)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy.replace("'", "&#39;")
    assert "default-src &#39;none&#39;" in policy.replace("'", "&#39;")
    assert "unsafe" not in policy


def test_nothing_is_loaded_from_anywhere() -> None:
    page = render(DATA)
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:,)", page)
    assert not re.search(
        r"url\(|@import|fetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|document\.write|eval\(", page
    )


def test_a_gate_that_cannot_tell_is_amber_and_no_red_cross() -> None:
    page = render(summary(verdict=NO, comparison="Too few lists."))
    assert "The gate cannot tell" in page
    assert '<div class="verdict unknown">' in page
    assert "✕" not in page
    assert "cannot be estimated on this holdout" in page
    assert "Not compared: Too few lists." in page


def test_undefined_data_are_an_error_and_not_a_blank() -> None:
    with pytest.raises(Exception, match="settings"):
        render({key: value for key, value in DATA.items() if key != "settings"})


# --- geometry ---------------------------------------------------------------------------------------------------------


@given(low=st.floats(-1e6, 1e6), span=st.floats(0, 1e6))
def test_ticks_are_even_and_hold_the_values(low: float, span: float) -> None:
    ticks = nice(low, low + span)
    step = ticks[1] - ticks[0]
    assert 2 <= len(ticks) <= 12
    assert ticks[0] <= low + 1e-6 * (abs(low) + span + 1)
    assert ticks[-1] >= low + span - 1e-6 * (abs(low) + span + 1)
    for one, two in pairwise(ticks):
        assert two - one == pytest.approx(step, rel=1e-6, abs=1e-9)


@given(rates=st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_bars_stand_on_the_axis_and_higher_is_more(rates: list[float]) -> None:
    plot = by_position(rates, [("line", rates)])
    assert plot is not None
    assert len(plot.bars) == len(plot.lines[0].points) == len(rates)
    for rate, bar, (x, y) in zip(rates, plot.bars, plot.lines[0].points, strict=True):
        assert bar.y + bar.height == pytest.approx(plot.bottom, abs=0.02)
        assert bar.y == pytest.approx(y, abs=0.02)
        assert plot.left <= bar.x < x < plot.right
        assert (bar.height > 0.02) <= (rate > 0)
    highest = max(range(len(rates)), key=rates.__getitem__)
    assert plot.bars[highest].height == max(bar.height for bar in plot.bars)


def test_nothing_to_draw_is_no_chart() -> None:
    assert by_position([], []) is None
    assert by_position([], [("unknown", [None])]) is None
    assert forest([("ips", None, None, None)]) is None


@given(spans=st.lists(st.tuples(st.floats(-1, 5), st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=6))
def test_a_forest_keeps_zero_in_sight_and_order(spans: list[tuple[float, float, float]]) -> None:
    chart = forest([("name", low, low + a, low + a + b) for low, a, b in spans] + [("unknown", None, None, None)])
    assert chart is not None
    assert chart.left <= chart.zero <= chart.width
    limit = max(2.0, 1.5 * median(low + a for low, a, _ in spans))
    for span, (low, a, _) in zip(chart.spans, spans, strict=False):
        assert (low + a > limit) >= span.beyond  # what is in the frame is drawn where it is
        assert span.leaves_right >= span.beyond
        assert chart.left <= span.low <= span.mid <= span.high <= chart.width
    assert not chart.spans[-1].known


def test_an_interval_that_is_much_wider_than_the_others_leaves_the_frame_with_an_arrow() -> None:
    chart = forest([("pi", -0.9, 0.05, 1.9), ("dm", 0.08, 0.1, 0.12), ("dr", 0.06, 0.09, 0.12)])
    assert chart is not None
    pi, dm, dr = chart.spans
    assert (pi.leaves_left, pi.leaves_right, pi.beyond) == (True, True, False)
    assert not any(span.leaves_left or span.leaves_right for span in (dm, dr))
    assert dm.high - dm.low > 40  # pixels: the others can be told apart
    assert chart.leaving


def test_an_estimate_below_the_frame_has_its_arrow_on_the_left() -> None:
    chart = forest([("pi", -1.8, -1.4, -0.2), ("dm", -0.5, 0.2, 0.9)])
    assert chart is not None
    assert (chart.spans[0].beyond, chart.spans[0].leaves_left, chart.spans[0].leaves_right) == (True, True, False)


def test_whole_intervals_have_no_arrows() -> None:
    chart = forest([("dm", -0.1, 0.1, 0.3), ("dr", -0.2, 0.1, 0.4)])
    assert chart is not None
    assert not chart.leaving


def test_a_long_spelling_has_room_or_is_cut() -> None:
    short, long = forest([("dm", 0.0, 0.1, 0.2)]), forest([("dm(model=pbm(examination=[1, 0.5, 0.3]))", 0.0, 0.1, 0.2)])
    assert short is not None
    assert long is not None
    assert long.left > short.left
    assert long.spans[0].name == "dm(model=pbm(examination=…"


def test_intervals_of_no_width_press_nothing_out_of_the_frame() -> None:
    chart = forest([("ips", 0.0, 0.0, 0.0), ("snips", 0.0, 0.0, 0.0), ("dm", -0.01, 0.0, 0.01)])
    assert chart is not None
    assert not chart.leaving


def test_one_context_that_stays_as_it_is() -> None:
    same = replace(GOOD, lift=-0.0001, lift_low=-0.01, lift_high=0.01)
    lists: list[LoggedList] = [("shoes", ("a", "b"), (1, 0))] * 9
    policy = prudent.rank(count(lists), model="cm")
    page = " ".join(render(summary(policy, evaluation=Evaluation((same,), MANIFEST))).split())
    assert "it <strong>does not differ</strong> from the incumbent list" in page
    assert "they are estimated to get <strong>as many clicks</strong> as the logged lists" in page
    assert "The only context is shown, with 100% of the logged lists" in page
    assert "of 1 context<" in page
    assert "−0.0%" not in page
    assert "+0.0%" not in page
