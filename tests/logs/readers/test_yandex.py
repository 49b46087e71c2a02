"""Clicks find the page they belong to, and a file that is not as it should be is named with its line."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.logs.readers import read_yandex, read_yandex_personalized
from tests.command import run
from tests.logs.readers.reading import by_hand, by_hand_personalized, lists_of, tabs, write

URLS = list(range(100, 110))
QUERY = tabs(1, 0, "Q", 7, 3, *URLS)
CLICK = tabs(1, 5, "C", 104)
DAY = tabs(1, "M", 20, 99)
PAGE = tabs(1, 0, "Q", 0, 7, "4,5", *(f"{url},1" for url in URLS))
PAGE_CLICK = tabs(1, 5, "C", 0, 104)


def clicks_at(*positions: int) -> tuple[int, ...]:
    return tuple(int(position in positions) for position in range(1, 11))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.tsv"


# --- what is read ---------------------------------------------------------------------------------------------------


def test_a_page_and_its_clicks(file: Path) -> None:
    """Two clicks on one url are one clicked position."""
    log = read_yandex(write(file, [QUERY, CLICK, CLICK, tabs(1, 9, "C", 100)]))
    assert lists_of(log) == [("7/3", tuple(URLS), clicks_at(1, 5))]
    assert not log.left_out


def test_a_page_of_the_personalized_log(file: Path) -> None:
    log = read_yandex_personalized(write(file, [DAY, PAGE, PAGE_CLICK]))
    assert lists_of(log) == [(7, tuple(URLS), clicks_at(5))]


def test_a_click_belongs_to_the_last_page_before_it_that_has_the_url(file: Path) -> None:
    other = tabs(1, 10, "Q", 8, 3, *range(200, 210))
    again = tabs(1, 20, "Q", 7, 3, *URLS)
    late = [tabs(1, 30, "C", 100), tabs(1, 30, "C", 200), tabs(1, 7, "C", 101)]
    log = read_yandex(write(file, [QUERY, other, again, *late]))
    assert sorted(lists_of(log)) == [
        ("7/3", tuple(URLS), clicks_at(2)),  # the first page: its click was before the second
        ("7/3", tuple(URLS), clicks_at(1)),
        ("8/3", tuple(range(200, 210)), clicks_at(1)),
    ]


def test_of_equal_times_the_line_decides(file: Path) -> None:
    at_once = [tabs(1, 0, "C", 100), QUERY, tabs(1, 0, "C", 101), QUERY.replace("Q\t7", "Q\t8"), tabs(1, 0, "C", 102)]
    log = read_yandex(write(file, at_once))
    assert sorted(lists_of(log)) == [("7/3", tuple(URLS), clicks_at(2)), ("8/3", tuple(URLS), clicks_at(3))]
    assert log.left_out == {"clicks outside their list": 1}


def test_a_click_goes_to_the_page_that_it_names(file: Path) -> None:
    """Although the same list was shown again in between."""
    again = tabs(1, 3, "Q", 1, 7, "4,5", *(f"{url},1" for url in URLS))
    log = read_yandex_personalized(write(file, [DAY, PAGE, again, PAGE_CLICK, tabs(1, 8, "C", 2, 100)]))
    assert sorted(lists_of(log)) == [(7, tuple(URLS), clicks_at()), (7, tuple(URLS), clicks_at(5))]
    assert log.left_out == {"clicks outside their list": 1}


def test_clicks_outside_the_list_are_counted_and_dropped(file: Path) -> None:
    outside = [tabs(1, 1, "C", 999), tabs(2, 5, "C", 100)]  # on no page; in a session without a query
    log = read_yandex(write(file, [tabs(1, 0, "C", 100), QUERY, *outside]))
    assert lists_of(log) == [("7/3", tuple(URLS), clicks_at())]
    assert prudent.count(log).tally.left_out == {"clicks outside their list": 3}


def test_a_session_is_of_one_file(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.tsv", [QUERY]), write(tmp_path / "b.tsv", [CLICK])]
    log = read_yandex(files)
    assert lists_of(log) == [("7/3", tuple(URLS), clicks_at())]
    assert log.left_out == {"clicks outside their list": 1}
    assert log.names == list(map(str, files))


def test_days_of_the_personalized_log(file: Path) -> None:
    later = [line.replace("1\t", "2\t", 1) for line in (DAY.replace("20", "21"), PAGE, PAGE_CLICK)]
    write(file, [DAY, PAGE, *later, PAGE.replace("1\t", "3\t", 1)])
    assert [len(lists_of(read_yandex_personalized(file, days=days))) for days in [(1, 20), (20, 21), (22, 30)]] == [
        1,
        2,
        0,
    ]
    assert read_yandex_personalized(file, days=(21, 21)).left_out == {"queries without a day": 1}
    assert len(lists_of(read_yandex_personalized(file))) == 3
    with pytest.raises(UsageError, match=r"days is \(23, 1\)"):
        read_yandex_personalized(file, days=(23, 1))


def test_test_queries_are_left_out(file: Path) -> None:
    test = PAGE.replace("Q\t0", "T\t1")
    log = read_yandex_personalized(write(file, [DAY, PAGE, test, PAGE_CLICK, tabs(1, 9, "C", 1, 100)]))
    assert lists_of(log) == [(7, tuple(URLS), clicks_at(5))]
    assert log.left_out == {"clicks outside their list": 1, "test queries": 1}


def test_left_out_adds_up_and_is_read_back(tmp_path: Path) -> None:
    log = read_yandex(write(tmp_path / "log.tsv", [QUERY, tabs(1, 1, "C", 999)]))
    counts = prudent.count(log, to=tmp_path / "counts.parquet")
    both = counts + prudent.Counts.read(tmp_path / "counts.parquet")
    assert both.tally.left_out == {"clicks outside their list": 2}
    assert both.tally.share_rejected == 0


def test_temporary_files_go_with_the_log(file: Path) -> None:
    log = read_yandex(write(file, [QUERY]))
    lists = Path(log.source[0])
    assert lists.exists()
    del log
    assert not lists.parent.exists()


# --- against plain loops --------------------------------------------------------------------------------------------


@st.composite
def files(draw: DrawFn, personalized: bool) -> list[str]:
    """Few sessions, times and urls, so that everything coincides, in any order of lines."""
    small, lines = st.integers(0, 3), []
    for _ in range(draw(st.integers(1, 12))):
        session, time, serp = draw(small), draw(small), draw(st.integers(0, 1))
        if draw(st.booleans()):
            urls = draw(st.permutations(range(12)))[:10]
            query = draw(small)
            if personalized:
                pairs = (f"{url},{url % 3}" for url in urls)
                lines.append(tabs(session, time, draw(st.sampled_from("QQT")), serp, query, "1,2", *pairs))
            else:
                lines.append(tabs(session, time, "Q", query, draw(small), *urls))
        else:
            url = draw(st.integers(0, 12))
            lines.append(tabs(session, time, "C", *([serp] if personalized else []), url))
    if personalized:
        lines += [tabs(session, "M", draw(st.integers(1, 4)), 5) for session in range(4)]
    return draw(st.permutations(lines))


same = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@same
@given(lines=files(personalized=False))
def test_equals_plain_loops(lines: list[str], file: Path) -> None:
    log = read_yandex(write(file, lines))
    lists, outside = by_hand(file)
    assert sorted(lists_of(log)) == lists
    assert sum(log.left_out.values()) == outside


@same
@given(lines=files(personalized=True), days=st.sampled_from([(1, 4), (2, 3), (1, 1)]))
def test_personalized_equals_plain_loops(lines: list[str], days: tuple[int, int], file: Path) -> None:
    log = read_yandex_personalized(write(file, lines), days=days)
    lists, outside, tests = by_hand_personalized(file, days)
    assert sorted(lists_of(log)) == lists
    assert log.left_out.get("clicks outside their list", 0) == outside
    assert log.left_out.get("test queries", 0) == tests


def test_little_memory_and_one_thread(file: Path) -> None:
    lines = []
    for session in range(20_000):
        urls = [(session * 31 + place * 7) % 1000 for place in range(10)]
        lines += [tabs(session, 0, "Q", session % 50, 1, *urls), tabs(session, 1, "C", urls[session % 10])]
    write(file, lines)
    small = prudent.DuckDB(memory="100MB", threads=1)
    assert sorted(lists_of(read_yandex(file, engine=small))) == sorted(lists_of(read_yandex(file)))


# --- files as people have them --------------------------------------------------------------------------------------

CONTENT = f"{QUERY}\n{CLICK}\n".encode()
ACCEPTED = {
    "plain": ("log.tsv", CONTENT),
    "any name": ("train", CONTENT),
    "gzip": ("log.tsv.gz", gzip.compress(CONTENT)),
    "gzip in two parts": ("log.gz", gzip.compress(CONTENT[:30]) + gzip.compress(CONTENT[30:])),
    "lines that end as in Windows": ("log.tsv", CONTENT.replace(b"\n", b"\r\n")),
    "a byte order mark": ("log.tsv", b"\xef\xbb\xbf" + CONTENT),
    "no line end at the end": ("log.tsv", CONTENT.rstrip()),
    "blank lines": ("log.tsv", b"\n" + CONTENT.replace(b"\n", b"\n\n")),
}


@pytest.mark.parametrize(("name", "content"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert lists_of(read_yandex(tmp_path / name)) == [("7/3", tuple(URLS), clicks_at(5))]


def line_two(line: str | bytes) -> bytes:
    return f"{QUERY}\n".encode() + (line.encode() if isinstance(line, str) else line) + b"\n" + f"{CLICK}\n".encode()


REFUSED = {
    "nothing": ("log.tsv", b"", ["log.tsv is empty"]),
    "nothing, gzipped": ("log.tsv.gz", gzip.compress(b""), ["log.tsv.gz is empty"]),
    "a cut gzip": (
        "log.tsv.gz",
        gzip.compress(os.urandom(5000).hex().encode())[:3000],
        ["log.tsv.gz", "end-of-stream"],
    ),
    "a gzip without its name": ("log.tsv", gzip.compress(CONTENT), ["Rename it to end in .gz"]),
    "its name without gzip": ("log.tsv.gz", CONTENT, ["log.tsv.gz", "Not a gzipped file"]),
    "mixed line ends": ("log.tsv", CONTENT.replace(b"\n", b"\r\n", 1), ["log.tsv mixes line endings"]),
    "eleven urls": ("log.tsv", line_two(f"{QUERY}\t110"), ["line 2", "URL1 ... URL10"]),
    "an id that is no number": ("log.tsv", line_two(CLICK.replace("104", "url")), ["line 2", r"1\t5\tC\turl"]),
    "an id with a point": ("log.tsv", line_two(CLICK.replace("104", "104.5")), ["line 2"]),
    "an id with zeros before it": ("log.tsv", line_two(CLICK.replace("104", "007")), ["line 2"]),
    "a negative id": ("log.tsv", line_two(CLICK.replace("104", "-1")), ["line 2"]),
    "an id of 20 digits": ("log.tsv", line_two(CLICK.replace("104", "9" * 20)), ["line 2"]),
    "an empty field": ("log.tsv", line_two(QUERY.replace("\t105", "\t")), ["line 2"]),
    "spaces for tabs": ("log.tsv", line_two(CLICK.replace("\t", " ")), ["line 2", "separated by tabs"]),
    "a kind that nobody knows": ("log.tsv", line_two(CLICK.replace("C", "X")), ["line 2"]),
    "a click on nothing": ("log.tsv", line_two("1\t5\tC"), ["line 2"]),
    "a NUL byte": ("log.tsv", line_two(b"1\t5\tC\t1\x004"), ["line 2"]),
    "the byte that separates nothing": ("log.tsv", line_two(b"1\t5\tC\t1\x014"), ["line 2"]),
    "a quote": ("log.tsv", line_two('1\t5\t"C\t104'), ["line 2"]),
    "not UTF-8": ("log.tsv", line_two(b"1\t5\tC\t10\xe9"), ["line 2"]),
    "the other format": ("log.tsv", f"{DAY}\n{PAGE}\n".encode(), ["line 1 is not of the format yandex:"]),
}


@pytest.mark.parametrize(("name", "content", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(name: str, content: bytes, said: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LogError) as refused:
        read_yandex(tmp_path / name)
    for part in [name, *said]:
        assert part in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        tabs(1, "M", 20),
        tabs(1, 5, "C", 104),
        PAGE.replace("100,1", "100"),
        PAGE.replace("4,5", "four"),
        f"{PAGE}\t110,1",
        QUERY,
    ],
)
def test_refused_in_the_personalized_log(line: str, file: Path) -> None:
    with pytest.raises(LogError, match="line 3 is not of the format yandex-personalized"):
        read_yandex_personalized(write(file, [DAY, PAGE, line]))


def test_a_fault_far_down(file: Path) -> None:
    """Where several threads read: DuckDB's own line numbers count from where a thread began."""
    lines = [tabs(session, 0, "Q", 7, 3, *URLS) for session in range(300_000)]
    lines[250_000] = "oh"
    with pytest.raises(LogError, match="line 250001 is not"):
        read_yandex(write(file, lines))


def test_no_such_file(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", [QUERY])
    with pytest.raises(LogError, match=r"There is no file .*Did you mean 'train.tsv'"):
        read_yandex(tmp_path / "trian.tsv")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (tabs(2, 0, "Q", 7, 3, *URLS[:9]), "item missing"),
        (tabs(2, 0, "Q", 7, 3), "item missing"),
        (tabs(2, 0, "Q", 7, 3, *URLS[:9], 100), "duplicate item in a list"),
    ],
)
def test_pages_that_are_rejected(line: str, reason: str, file: Path) -> None:
    """As in every log: a page that is not whole is counted under its reason, and may not be one of few."""
    log = read_yandex(write(file, [QUERY, line, tabs(2, 1, "C", 100)]))
    assert prudent.count(log, max_rejected=0.5).tally.rejected == {reason: 1}
    with pytest.raises(LogError, match=f"log.tsv are rejected .*1 × {reason}"):
        prudent.count(log)


# --- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "count", "rank"])
@pytest.mark.parametrize(
    ("name", "lines"),
    [("yandex", [QUERY, CLICK, tabs(1, 6, "C", 999)]), ("yandex-personalized", [PAGE, PAGE_CLICK, PAGE_CLICK[:-1]])],
)
def test_commands(command: str, name: str, lines: list[str], file: Path) -> None:
    write(file, lines)
    output = () if command == "check" else ("-o", file.with_name("out.parquet"))
    ran = run(command, file, "--format", name, *output)
    assert ran.code == 0
    assert "Left out: 1 clicks outside their list." in ran.text


def test_a_format_knows_its_columns(file: Path) -> None:
    ran = run("check", write(file, [QUERY]), "--format", "yandex", "--layout", "rows")
    assert ran.code == 2
    assert "no setting layout (--layout): leave it out" in ran.text


def test_a_fault_is_one_line_on_the_command_line(file: Path) -> None:
    ran = run("check", write(file, [QUERY, "oh"]), "--format", "yandex")
    assert ran.code == 3
    assert "log.tsv, line 2 is not of the format yandex: 'oh'." in ran.text


# --- real clicks ----------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_totals_of_the_real_log() -> None:
    """By the README of the data: sessions, queries, urls, clicked positions, clicks outside the list, CTR."""
    real = [Path(os.environ["PRUDENT_DATA"]) / "yandex" / f"{part}.tsv.gz" for part in ("train", "test")]
    assert [len(lists_of(read_yandex(part))) for part in real] == [35_064, 21_413]
    log = read_yandex(real)
    health = prudent.check(prudent.count(log))
    assert (health.lists, health.contexts, health.items, health.clicks) == (56_477, 20, 1_301, 73_946)
    assert log.left_out == health.left_out == {"clicks outside their list": 693}
    ctr = [0.307, 0.251, 0.177, 0.150, 0.108, 0.081, 0.073, 0.054, 0.057, 0.052]
    assert [round(rate, 3) for rate in health.ctr] == ctr
    assert round(health.without_click, 3) == 0.319
