"""The report in a real browser: chromium, driven by playwright."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Browser, Page, Route

import prudent
from prudent.base.text import visible
from prudent.click_models.simulate import write_log
from prudent.reporting import report
from prudent.research.demo import shop
from tests.programs import find_axe
from tests.reference import LoggedList
from tests.reporting.hostile import GOOD_LINK, PAYLOADS, write_hostile_names, write_hostile_report
from tests.strategies import table

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def shop_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("shop")
    world = shop(seed=0)
    for name, lists, seed in (("train", 8000, 1), ("held_out", 4000, 2)):
        write_log(world, lists, folder / f"{name}.parquet", seed=seed)
    train = prudent.Log(folder / "train.parquet")
    policy = prudent.rank(prudent.count(train))
    to = folder / "report.html"
    return to, report(policy, prudent.Log(folder / "held_out.parquet"), to=to, train=train)


@pytest.fixture(scope="module")
def rewarded_report(shop_report: tuple[Path, dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
    """The same shop, by what clicks on long names earn."""
    folder = shop_report[0].parent
    earned = "list_transform(clicks, lambda click, k: click * len(items[k]) ** 2) as margin"
    for part in ("train", "held_out"):
        duckdb.execute(f"copy (select *, {earned} from '{folder}/{part}.parquet') to '{folder}/{part}_earned.parquet'")
    policy = prudent.rank(folder / "train_earned.parquet", reward="margin")
    to = folder / "rewarded.html"
    return to, report(policy, folder / "held_out_earned.parquet", to=to, reward="margin")


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile_report(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def named_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile names, images and links on hostile items."""
    folder = tmp_path_factory.mktemp("named")
    return write_hostile_report(folder, names=write_hostile_names(folder))


@contextmanager
def opened(browser: Browser, file: Path, **settings: Any) -> Iterator[Page]:
    """A page that ends with an error if anything was loaded, printed to the console, thrown or asked."""
    context = browser.new_context(**settings)
    page = context.new_page()
    troubles: list[str] = []

    def watch(event: str, say: Callable[[Any], str]) -> None:
        page.on(event, lambda seen: troubles.append(f"{event}: {say(seen)}"))  # type: ignore[call-overload]

    watch("console", lambda message: message.text)
    watch("pageerror", str)
    watch("popup", lambda popup: popup.url)
    watch("dialog", lambda dialog: dialog.message)
    page.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    yield page
    context.close()
    assert not troubles


def names(page: Page) -> list[str]:
    return page.locator("#found li bdi").all_inner_texts()


# --- charts -----------------------------------------------------------------------------------------------------------


def test_bars_are_as_high_as_the_click_rates(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    file, data = shop_report
    with opened(browser, file) as page:
        bars = page.evaluate(
            "[...document.querySelectorAll('#positions rect')].map((bar) => bar.getBBox()).map((b) => [b.x, b.height])"
        )
        width = page.evaluate("document.querySelector('#positions svg').viewBox.baseVal.width")
    observed = data["positions"]["observed"]
    assert len(bars) == len(observed) == 10
    assert [x for x, _ in bars] == sorted(x for x, _ in bars)
    assert all(0 < x < width for x, _ in bars)
    for (_, height), rate in zip(bars, observed, strict=True):
        assert height / bars[0][1] == pytest.approx(rate / observed[0], abs=0.01)


def test_lines_and_intervals_of_all_charts_lie_in_their_frames(
    browser: Browser, shop_report: tuple[Path, dict[str, Any]]
) -> None:
    file, data = shop_report
    with opened(browser, file) as page:
        outside = page.evaluate(
            """() => [...document.querySelectorAll("svg[viewBox]")].flatMap((svg) => {
              const frame = svg.viewBox.baseVal;
              return [...svg.querySelectorAll("rect, circle, line, polyline, path, text")].map((mark) => mark.getBBox())
                .filter((box) => box.x < -1 || box.x + box.width > frame.width + 1
                  || box.y < -1 || box.y + box.height > frame.height + 1)
                .map((box) => [svg.getAttribute("class"), box.x, box.y, box.width, box.height]);
            })"""
        )
        assert outside == []
        assert page.locator("#positions polyline").count() == 2  # foreseen click rates, and examination
        assert page.locator("#models polyline").count() >= 2
        told = [one for one in data["estimates"] if one["lift"] is not None]
        assert page.locator("#change .forest circle").count() == len(told) > 0


@pytest.mark.parametrize(
    ("shown", "unit"), [("shop_report", "attraction"), ("rewarded_report", "reward per examination")]
)
def test_every_candidate_has_its_interval_where_its_numbers_are(
    shown: str, unit: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    file, data = request.getfixturevalue(shown)
    context = data["contexts"]["shown"][0]
    assert (max(row[7] for row in context["rows"]) > 1) == (unit != "attraction")
    with opened(browser, file) as page:
        assert page.locator("th.picture span").first.inner_text() == unit
        drawn = page.evaluate(
            """() => [...document.querySelectorAll("td.picture svg")].map((svg) => {
              const span = svg.querySelector(".interval").getBBox();
              return [span.x, Number(svg.querySelector(".mean").getAttribute("cx")), span.x + span.width];
            })"""
        )
    assert len(drawn) == len(context["rows"])
    low, high = context["rows"][0][5:8:2]  # two of the marks tell the scale for all
    scale = (drawn[0][2] - drawn[0][0]) / (high - low)
    start = drawn[0][0] - low * scale
    for place, (_, _, _, _, _, lower, mean, upper, _) in zip(drawn, context["rows"], strict=True):
        assert place == pytest.approx([start + scale * value for value in (lower, mean, upper)], abs=0.5)


# --- searching --------------------------------------------------------------------------------------------------------


def test_search_works_with_the_keyboard_alone(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    file, data = shop_report
    with opened(browser, file) as page:
        assert len(names(page)) == len(data["contexts"]["shown"]) == 300
        for _ in range(30):  # by tabs from the top of the page
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "search":
                break
        page.keyboard.type("SUN gl")
        actual = names(page)
        assert actual
        assert all("sun" in name and "gl" in name for name in actual)
        assert len(actual) == sum("sunglasses" in context["name"] for context in data["contexts"]["shown"])
        assert page.locator("#hits").inner_text() == f"{len(actual)} contexts of 300"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        assert page.locator("#chosen").inner_text() == actual[1]
        assert page.locator("#found [aria-selected=true]").inner_text().startswith(actual[1])
        assert page.locator("#search").get_attribute("aria-activedescendant") == page.locator(
            "#found [aria-selected=true]"
        ).get_attribute("id")
        page.keyboard.press("Escape")
        assert len(names(page)) == 300


def test_a_search_for_nothing_says_so(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    with opened(browser, shop_report[0]) as page:
        page.fill("#search", "no such thing")
        page.keyboard.press("Enter")
        assert names(page) == []
        assert page.locator("#hits").inner_text() == "No context on this page has that name."


def test_a_context_shows_both_lists_and_why(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    file, data = shop_report
    with opened(browser, file) as page:
        for at in (0, 7, 299):
            context = data["contexts"]["shown"][at]
            page.locator("#found li").nth(at).click()
            assert page.locator("#chosen").inner_text() == context["name"]
            for column, side in ((1, 0), (2, 1)):
                placed = sorted((row for row in context["rows"] if row[column]), key=lambda row: row[column])
                shown = page.locator(".sides ol").nth(side).locator("bdi").all_inner_texts()
                assert shown == [row[0] for row in placed]
            assert page.locator("td.why").all_inner_texts() == [row[8] for row in context["rows"]]
            counted = [f"{row[4]:,} / {row[3]:,}" for row in context["rows"]]
            assert page.locator("td.counts").all_inner_texts() == counted
            slopes = page.locator(".sides svg path").count()
            assert slopes == sum(1 for row in context["rows"] if row[1] and row[2])


def test_lists_that_stay_can_be_left_out(browser: Browser, hostile_report: Path) -> None:
    with opened(browser, hostile_report) as page:
        everything = names(page)
        page.check("#only")
        changing = names(page)
        assert 0 < len(changing) <= len(everything)
        for at in range(len(changing)):
            page.locator("#found li").nth(at).click()
            assert page.locator(".sides .badge:not(.same)").count() > 0


# --- nothing runs, nothing leaves -------------------------------------------------------------------------------------


def test_names_are_shown_and_never_obeyed(browser: Browser, hostile_report: Path) -> None:
    """Every name is a context, and an item of others; each context is opened, and what is in the page is counted."""
    assert len(PAYLOADS) >= 12
    with opened(browser, hostile_report) as page:
        assert page.title() == PAYLOADS[1]
        contexts = page.evaluate("JSON.parse(document.getElementById('data').textContent).contexts.map((c) => c.name)")
        assert sorted(contexts) == sorted(visible(name) for name in PAYLOADS)
        seen = set()
        for at in range(len(PAYLOADS)):
            page.locator("#found li").nth(at).click()
            assert page.locator("#chosen").text_content() == contexts[at]
            seen.update(page.locator("th.item bdi").all_text_contents())
            page.mouse.move(300 + at, 500)
            census = page.evaluate(
                """() => ({
                  scripts: document.scripts.length,
                  styles: document.querySelectorAll("style, link").length,
                  foreign: document.querySelectorAll("img, iframe, object, embed, math, base, form, video").length,
                  handlers: [...document.querySelectorAll("*")].filter((node) =>
                    [...node.attributes].some((one) => /^on|^srcdoc$/i.test(one.name))).length,
                  links: [...document.links].filter((link) => !link.getAttribute("href").startsWith("#")).length,
                  hacked: window.hacked ?? null,
                })"""
            )
            assert census == {"scripts": 2, "styles": 2, "foreign": 0, "handlers": 0, "links": 0, "hacked": None}
        assert seen == {visible(name) for name in PAYLOADS}


def test_even_markup_that_slipped_through_would_not_run(browser: Browser, hostile_report: Path) -> None:
    """The content policy is the second lock: take the first away, and nothing runs all the same."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(hostile_report.as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 1";
          document.body.append(script);
          const range = document.createRange();
          document.body.append(range.createContextualFragment("<img src=x onerror='window.hacked = 1'>"));
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked ?? null") is None
    context.close()


def test_names_that_turn_text_around_stay_in_their_place(browser: Browser, hostile_report: Path) -> None:
    with opened(browser, hostile_report) as page:
        assert "\u202e" not in page.content()
        isolated = page.evaluate("getComputedStyle(document.querySelector('#found bdi')).unicodeBidi")
        assert isolated == "isolate"


def test_names_images_and_links_of_a_stranger_do_nothing_but_stand_there(browser: Browser, named_report: Path) -> None:
    with opened(browser, named_report) as page:
        drawn = set()
        for at in range(len(PAYLOADS)):
            page.locator("#found li").nth(at).click()
            census = page.evaluate(
                """async () => {
                  const images = [...document.images];
                  await Promise.all(images.map((one) => { one.loading = "eager"; return one.decode(); }));
                  return {
                    scripts: document.scripts.length,
                    foreign: document.querySelectorAll("iframe, object, embed, math, base, form, video").length,
                    handlers: [...document.querySelectorAll("*")].filter((node) =>
                      [...node.attributes].some((one) => /^on|^srcdoc$/i.test(one.name))).length,
                    images: [...new Set(images.map((one) => `${one.src.slice(0, 22)} ${one.referrerPolicy}`))],
                    links: [...new Set([...document.links].map((one) => one.getAttribute("href"))
                      .filter((one) => !one.startsWith("#")))],
                    hacked: window.hacked === undefined,
                  };
                }"""
            )
            drawn.update(census.pop("images"))
            assert set(census.pop("links")) <= {GOOD_LINK}
            assert census == {"scripts": 2, "foreign": 0, "handlers": 0, "hacked": True}
        assert drawn == {"data:image/png;base64, no-referrer"}
        link = page.locator("#who a").first
        assert link.get_attribute("href") == GOOD_LINK
        assert set(str(link.get_attribute("rel")).split()) >= {"noopener", "noreferrer"}


def test_a_page_may_load_images_of_other_servers_only_if_it_was_asked_to(browser: Browser, tmp_path: Path) -> None:
    names = write_hostile_names(tmp_path)
    file = write_hostile_report(tmp_path, names=names, remote_images=True)
    context = browser.new_context()
    page = context.new_page()
    loaded: set[tuple[str, str | None]] = set()

    def refuse(route: Route) -> None:
        loaded.add((route.request.url, route.request.headers.get("referer")))
        route.abort()

    page.route("**/*.png", refuse)
    page.goto(file.as_uri())
    for at in range(len(PAYLOADS)):
        page.locator("#found li").nth(at).click()
        page.evaluate("document.querySelectorAll('img').forEach((one) => { one.loading = 'eager'; })")
    page.wait_for_timeout(200)
    assert loaded == {("https://x.invalid/pixel.png", None), ("http://x.invalid/pixel.png", None)}
    assert "loads nothing" not in page.locator("footer").inner_text()
    context.close()


# --- for everyone -----------------------------------------------------------------------------------------------------


@pytest.mark.axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["shop", "hostile", "named"])
@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(
    browser: Browser,
    shop_report: tuple[Path, dict[str, Any]],
    hostile_report: Path,
    named_report: Path,
    scheme: str,
    which: str,
    viewport: dict[str, int] | None,
) -> None:
    file = {"shop": shop_report[0], "hostile": hostile_report, "named": named_report}[which]
    with opened(browser, file, color_scheme=scheme, **({"viewport": viewport} if viewport else {})) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.evaluate(Path(str(find_axe())).read_text(encoding="utf-8"))
        actual = page.evaluate("async () => (await axe.run()).violations")
    serious = [
        (one["id"], node["html"][:200])
        for one in actual
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert serious == []


def test_light_and_dark_differ_and_both_are_readable(
    browser: Browser, shop_report: tuple[Path, dict[str, Any]]
) -> None:
    """Contrast of the text is axe's to judge; here, that the two schemes are two."""
    colours = {}
    for scheme in ("light", "dark"):
        with opened(browser, shop_report[0], color_scheme=scheme) as page:
            colours[scheme] = page.evaluate(
                "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle(document.body))"
            )
    assert colours["light"][0] == "rgb(255, 255, 255)"
    assert colours["dark"][0] != colours["light"][0]
    assert colours["dark"][1] != colours["light"][1]


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_at_any_width(
    browser: Browser, shop_report: tuple[Path, dict[str, Any]], named_report: Path, width: int
) -> None:
    for file in (shop_report[0], named_report):
        with opened(browser, file, viewport={"width": width, "height": 800}) as page:
            page.locator("#found li").nth(24).click()
            inside = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert inside[0] <= inside[1]


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_no_table_scrolls_sideways(
    browser: Browser, shop_report: tuple[Path, dict[str, Any]], named_report: Path, width: int
) -> None:
    for file in (shop_report[0], named_report):
        with opened(browser, file, viewport={"width": width, "height": 844}) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            hidden = page.evaluate(
                "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth)"
                ".map((one) => one.getAttribute('aria-label'))"
            )
            assert hidden == []
            named = "(cell) => getComputedStyle(cell, '::before').content"
            assert page.locator(".stack td.n:visible").first.evaluate(named) == '"lift"'


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow(browser: Browser, tmp_path: Path) -> None:
    """Hoeffding's bound goes below 0 and its mirror above 1 where an item was shown a few times."""
    lists: list[LoggedList] = [*[("shoes", ("a", "b"), (1, 0))] * 2, *[("shoes", ("b", "a"), (1, 0))] * 2]
    many: list[LoggedList] = [("boots", ("c", "d"), clicks) for clicks in [(1, 0), (0, 0), (0, 1)] * 2000]
    policy = prudent.rank(prudent.count(prudent.Log(table(lists + many))), model="cm", bound="hoeffding(delta=0.2)")
    report(policy, prudent.Log(table(lists + many)), to=tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        said = "an arrow marks an interval that exceeds the axis"
        page.get_by_role("option", name="boots").click()
        assert "L" not in (page.locator(".interval").first.get_attribute("d") or "L")
        assert said not in page.locator("#detail").inner_text()
        page.get_by_role("option", name="shoes").click()
        assert "L" in (page.locator(".interval").first.get_attribute("d") or "")
        assert said in page.locator("#detail").inner_text()


def test_the_numbers_of_the_axis_are_as_large_as_text_at_any_width(
    browser: Browser, shop_report: tuple[Path, dict[str, Any]]
) -> None:
    for width in (390, 1120):
        with opened(browser, shop_report[0], viewport={"width": width, "height": 800}) as page:
            heights = page.evaluate("[...document.querySelectorAll('.axis span')].map((one) => one.offsetHeight)")
            assert len(heights) == 3
            assert all(12 <= height <= 20 for height in heights)


def test_prints(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    with opened(browser, shop_report[0], color_scheme="dark") as page:
        printed = page.pdf(format="A4")
        page.emulate_media(media="print")
        assert not page.locator("nav").is_visible()
        assert page.locator("#chosen").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert printed.startswith(b"%PDF")


def test_without_scripts_the_rest_is_there(browser: Browser, shop_report: tuple[Path, dict[str, Any]]) -> None:
    with opened(browser, shop_report[0], java_script_enabled=False) as page:
        assert page.locator("#change .cards").is_visible()
        assert page.locator("noscript").count() == 1
        assert not page.locator("#explorer").is_visible()
