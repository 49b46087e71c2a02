"""Spellings: text in, the value out, and back."""

import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.spec import Registry, check_clip, check_number, check_share, check_word, whole_number

toys: Registry[object] = Registry("toy")


@toys.register("ball")
@dataclass(frozen=True)
class Ball:
    delta: float = 0.2
    size: float = 1.0
    colour: str = "red"
    spots: tuple[float, ...] = ()


@toys.register("kite-2")
@dataclass(frozen=True)
class Kite:
    tails: tuple[float, ...] = field(default_factory=lambda: (1.0, 2.0))


@toys.register("top")
@dataclass(frozen=True)
class Top:
    pass


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ball", Ball()),
        ("ball()", Ball()),
        (" ball ( ) ", Ball()),
        ("ball(size=2)", Ball(size=2)),
        ("ball(size=1e-3,colour=blue)", Ball(size=0.001, colour="blue")),
        ("ball( size = 2 , spots = [ 1 , .5 ] )", Ball(size=2, spots=(1, 0.5))),
        ("ball(spots=[])", Ball()),
        ("ball(spots=[3])", Ball(spots=(3,))),
        ("ball(spots=[1, 2], size=3)", Ball(size=3, spots=(1, 2))),
        ("ball(size=2,)", Ball(size=2)),
        ("kite-2", Kite()),
        ("kite-2(tails=[])", Kite(tails=())),
        ("top", Top()),
    ],
)
def test_reads(text: str, value: object) -> None:
    assert toys.parse(text) == value
    assert toys.parse(str(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Ball(), "ball(delta=0.2)"),  # the level always
        (Ball(delta=1, size=1), "ball(delta=1)"),
        (Ball(size=2.50, colour="blue"), "ball(delta=0.2, size=2.5, colour=blue)"),
        (Ball(spots=(1, 0.5)), "ball(delta=0.2, spots=[1, 0.5])"),
        (Ball(delta=np.float64(0.3), size=np.float64(2)), "ball(delta=0.3, size=2)"),
        (Ball(size=1e-9), "ball(delta=0.2, size=1e-09)"),
        (Kite(), "kite-2"),
        (Kite(tails=()), "kite-2(tails=[])"),
        (Top(), "top"),
    ],
)
def test_spells_what_differs_from_the_defaults(value: object, text: str) -> None:
    assert str(value) == text
    assert toys.parse(text) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bal", "No toy is called 'bal'. Did you mean 'ball'? Known: ball, box, kite-2, top."),
        ("xyz", "No toy is called 'xyz'. Known: ball, box, kite-2, top."),
        ("", "Cannot read '' as a toy. Write it like 'name' or 'name(setting=value)'."),
        ("ball(", "Cannot read 'ball(' as a toy"),
        ("ball)", "Cannot read 'ball)' as a toy"),
        ("ball(size=2) and more", "Cannot read"),
        ("ball(2)", "Cannot read '2' in ball(...). Write settings as name=value."),
        ("ball(size)", "Cannot read 'size' in ball(...)"),
        ("ball(size=)", "Cannot read 'size=' in ball(...)"),
        ("ball(size=1=2)", "Cannot read 'size=1=2'"),
        ("ball(spots=[1, 2)", "Cannot read 'spots=[1, 2'"),
        ("ball(size=2, , colour=red)", "Cannot read '' in ball(...)"),
        ("ball(sise=2)", "ball has no setting 'sise'. Did you mean 'size'? It has: delta, size, colour, spots."),
        ("top(size=2)", "top has no setting 'size'. It has none."),
        ("ball(size=2, size=3)", "ball(...) sets 'size' twice."),
    ],
)
def test_refuses(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        toys.parse(text)
    assert complaint in str(refusal.value)


@toys.register("box")
@dataclass(frozen=True)
class Box:
    """Holds another toy, given as a value or as its spelling."""

    toy: object = field(default_factory=lambda: toys.parse("ball"))
    lid: str = "closed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "toy", toys.resolve(self.toy))


@pytest.mark.parametrize(
    ("text", "value", "spelled"),
    [
        ("box", Box(), "box"),
        ("box(toy=ball)", Box(), "box"),
        ("box( toy = ball( delta = .2 ) )", Box(), "box"),
        ("box(toy=top, lid=open)", Box(Top(), "open"), "box(toy=top, lid=open)"),
        ("box(lid=open,toy=top())", Box(Top(), "open"), "box(toy=top, lid=open)"),
        ("box(toy=ball(spots=[1, 0.5], size=2))", Box(Ball(size=2, spots=(1, 0.5))), None),
        ("box(toy=box(toy=box(toy=kite-2(tails=[]))))", Box(Box(Box(Kite(())))), None),
    ],
)
def test_a_setting_holds_another_value(text: str, value: object, spelled: str | None) -> None:
    assert toys.parse(text) == value
    assert toys.parse(str(value)) == value
    assert spelled is None or str(value) == spelled


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("box(toy=bal(size=1))", "Did you mean 'ball'?"),
        ("box(toy=ball(sise=1))", "ball has no setting 'sise'"),
        ("box(toy=ball(size=1)", "Cannot read 'toy=ball(size=1'"),
        ("box(toy=ball)(lid=open)", "Cannot read 'toy=ball)(lid=open'"),
        ("box(toy=[1)(2])", "Cannot read 'toy=[1)(2]'"),
    ],
)
def test_refuses_within_another_value(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        toys.parse(text)
    assert complaint in str(refusal.value)


def test_names_come_sorted() -> None:
    assert list(toys) == ["ball", "box", "kite-2", "top"]
    assert toys["kite-2"] is Kite


# --- entry points -----------------------------------------------------------------------------------------------------

PLUGIN = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Kazoo:
    \"\"\"A toy of another package.\"\"\"
    pitch: float = 440.0
    def play(self): return self.pitch

class NoDataclass:
    def play(self): return 0

loud = Kazoo()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[object]:
    """A registry, and a package that adds to it as an installed one does."""
    name = f"toy_shop_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(PLUGIN)
    about = tmp_path / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(
        "[test.toys]\n"
        f"kazoo = {name}:Kazoo\n"
        f"gone = {name}:Gone\n"
        "lost = no_such_module_at_all:Lost\n"
        f"plain = {name}:NoDataclass\n"
        f"value = {name}:loud\n"
        f"ball = {name}:Kazoo\n"
        f"Upper_Case = {name}:Kazoo\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[object] = Registry("toy", "test.toys", "play")
    registry.register("ball")(Ball)
    return registry


def test_a_class_of_another_package_is_one_of_ours(install: Registry[object]) -> None:
    with pytest.warns(PrudentWarning):
        kazoo = install.parse("kazoo( pitch = 220 )")
    assert str(kazoo) == "kazoo(pitch=220)"
    assert install.parse(str(kazoo)) == install.resolve(kazoo) == kazoo
    assert list(install) == ["ball", "kazoo"]
    assert (install["kazoo"].__doc__ or "").startswith("A toy of another package")


def test_a_broken_plugin_is_a_warning_with_its_name(install: Registry[object]) -> None:
    with pytest.warns(PrudentWarning) as warned:
        assert "kazoo" in list(install)
    messages = [str(one.message) for one in warned]
    assert [message.split("'")[1] for message in messages] == ["Upper_Case", "ball", "gone", "lost", "plain", "value"]
    assert all("1.2 is not available" in message for message in messages)
    assert "No module named 'no_such_module_at_all'" in messages[3]
    assert "taken by" in messages[1]
    assert install["ball"] is Ball
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(install)  # warned once


def test_plugins_are_not_loaded_for_names_of_ours(install: Registry[object]) -> None:
    before = set(sys.modules)
    install.parse("ball")
    assert set(sys.modules) == before
    with pytest.warns(PrudentWarning), pytest.raises(UsageError, match="Did you mean 'kazoo'"):
        install.parse("kazo")


# --- argument checks --------------------------------------------------------------------------------------------------


def test_resolve_refuses_what_is_not_of_the_kind(install: Registry[object]) -> None:
    with pytest.warns(PrudentWarning), pytest.raises(UsageError, match=r"3 is not a toy\. Known: ball, kazoo"):
        install.resolve(3)


def test_checks_of_arguments() -> None:
    for good in (0, 1, 0.5, np.float64(0.2), True):
        check_share("share", good)
    for bad in (-0.1, 1.1, float("nan"), "half", [0.5], None):
        with pytest.raises(UsageError, match=r"share is .*; it must be a number at least 0 and at most 1"):
            check_share("share", bad)
    check_clip(float("inf"))
    with pytest.raises(UsageError, match="clip is 0; it must be a number above 0, or inf for none"):
        check_clip(0)
    with pytest.raises(UsageError, match="lift is inf; it must be a number above -1"):
        check_number("lift", float("inf"), above=-1)
    with pytest.raises(UsageError, match="There is no reward 'click'"):
        check_word("reward", "click", ["clicks"])
    assert whole_number("n", np.int64(3), 1, 5) == 3
    with pytest.raises(UsageError, match="n is 6; it must be a whole number, at least 1 and at most 5"):
        whole_number("n", 6, 1, 5)
