"""Spellings: text in, the value out, and back."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from prudent.base.errors import UsageError
from prudent.base.spec import Registry

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
        ("bal", "No toy is called 'bal'. Did you mean 'ball'? Known: ball, kite-2, top."),
        ("xyz", "No toy is called 'xyz'. Known: ball, kite-2, top."),
        ("", "Cannot read '' as a toy. Write it like 'name' or 'name(setting=value)'."),
        ("ball(", "Cannot read 'ball(' as a toy"),
        ("ball)", "Cannot read 'ball)' as a toy"),
        ("ball(size=2) and more", "Cannot read"),
        ("ball(2)", "Cannot read '2' in ball(...). Write settings as name=value."),
        ("ball(size)", "Cannot read 'size' in ball(...)"),
        ("ball(size=)", "Cannot read 'size=' in ball(...)"),
        ("ball(size=1=2)", "Cannot read 'size=1=2'"),
        ("ball(spots=[1, 2)", "Cannot read 'spots=[1, 2'"),
        ("ball(size=2, , colour=red)", "Cannot read ', colour=red'"),
        ("ball(sise=2)", "ball has no setting 'sise'. Did you mean 'size'? It has: delta, size, colour, spots."),
        ("top(size=2)", "top has no setting 'size'. It has none."),
        ("ball(size=2, size=3)", "ball(...) sets 'size' twice."),
    ],
)
def test_refuses(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        toys.parse(text)
    assert complaint in str(refusal.value)


def test_names_come_sorted() -> None:
    assert list(toys) == ["ball", "kite-2", "top"]
    assert toys["kite-2"] is Kite
