"""The geometry of charts: numbers in, coordinates of marks out; the template draws them as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from statistics import median

from prudent.base.text import percent

WIDTH, HEIGHT = 520.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 12.0, 12.0, 40.0
_ROW = 34.0  # height of a row of a forest plot
_LEAST, _FRAME = -1.0, 2.0  # the usual limits of its axis
_LETTER = 9.4  # pixels of a letter in the names of its rows, at most
_LONGEST = 26  # letters of such a name
_TOLERANCE = 1e-6  # at the ends of the axis
_WIDE = 4  # an interval this many times as wide as the median does not extend the axis


@dataclass(frozen=True)
class Tick:
    """A grid line and its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A vertical bar."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """A series: points, and the line through them."""

    name: str
    points: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """The attribute ``points`` of SVG."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.points)


@dataclass(frozen=True)
class Plot:
    """Bars and lines by position."""

    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    rows: tuple[Tick, ...]  # of the vertical axis
    columns: tuple[Tick, ...]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True)
class Span:
    """An interval and its estimate."""

    name: str
    y: float
    low: float
    mid: float
    high: float
    known: bool = True
    beyond: bool = False  # the estimate exceeds the axis
    leaves_left: bool = False  # an end does
    leaves_right: bool = False


@dataclass(frozen=True)
class Forest:
    """A forest plot: intervals on one scale."""

    spans: tuple[Span, ...]
    columns: tuple[Tick, ...]
    zero: float
    bottom: float
    height: float
    left: float
    width: float = WIDTH

    @property
    def leaving(self) -> bool:
        """Whether any interval exceeds the axis."""
        return any(span.leaves_left or span.leaves_right for span in self.spans)


def by_position(
    bars: Sequence[float | None], lines: Sequence[tuple[str, Sequence[float | None]]], floor_at: float | None = 0.0
) -> Plot | None:
    """Bars and lines over positions 1, 2, 3, ...; None without any number."""
    values = [value for series in (bars, *(line for _, line in lines)) for value in series if value is not None]
    if not values:
        return None
    positions = max(len(bars), *(len(line) for _, line in lines), 1)
    ticks = nice(min(values) if floor_at is None else floor_at, max(values))
    low, high = ticks[0], ticks[-1]
    step = (WIDTH - _LEFT - _RIGHT) / positions

    def x(place: int) -> float:
        return round(_LEFT + step * (place + 0.5), 2)

    def y(value: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low), 2)

    wide = round(min(34.0, 0.62 * step), 2)
    every = ceil(positions / 20)
    return Plot(
        bars=tuple(
            Bar(round(x(i) - wide / 2, 2), y(value), wide, round(y(low) - y(value), 2))
            for i, value in enumerate(bars)
            if value is not None
        ),
        lines=tuple(
            Line(name, tuple((x(i), y(value)) for i, value in enumerate(line) if value is not None))
            for name, line in lines
            if any(value is not None for value in line)
        ),
        rows=tuple(Tick(y(tick), _text(tick, ticks)) for tick in ticks),
        columns=tuple(Tick(x(i), str(i + 1)) for i in range(0, positions, every)),
    )


def forest(rows: Sequence[tuple[str, float | None, float | None, float | None]]) -> Forest | None:
    """Name, low, estimate and high of each row; zero is always on the axis; None without any number."""
    known = [
        (start, mid, end) for _, start, mid, end in rows if start is not None and mid is not None and end is not None
    ]
    if not known:
        return None
    # One very wide interval must not make the others unreadable.
    width = median([end - start for start, _, end in known if end > start] or [0.0])
    shown = [
        value for start, mid, end in known for value in ((start, mid, end) if end - start <= _WIDE * width else (mid,))
    ]
    most = max(_FRAME, 1.5 * median(mid for _, mid, _ in known))  # most estimates are within
    low, high = max(_LEAST, min(0.0, *shown)), min(most, max(0.0, *shown))
    ticks = nice(low, high)
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name, *_ in rows]
    left = max(124.0, 16 + _LETTER * max(map(len, names)))

    def x(value: float) -> float:
        inside = min(max(value, ticks[0]), ticks[-1])
        return round(left + (WIDTH - left - 24) * (inside - ticks[0]) / (ticks[-1] - ticks[0]), 2)

    spans = []
    for i, (name, (_, start, mid, end)) in enumerate(zip(names, rows, strict=True)):
        y = _TOP + _ROW * (i + 0.5)
        if start is None or mid is None or end is None:
            spans.append(Span(name, y, 0.0, 0.0, 0.0, known=False))
        else:
            leaves = start < ticks[0] - _TOLERANCE, end > ticks[-1] + _TOLERANCE
            beyond = not ticks[0] - _TOLERANCE <= mid <= ticks[-1] + _TOLERANCE
            spans.append(Span(name, y, x(start), x(mid), x(end), True, beyond, *leaves))
    bottom = _TOP + _ROW * len(rows)
    return Forest(
        tuple(spans),
        tuple(Tick(x(tick), percent(tick, 0 if ticks[1] - ticks[0] >= 0.0099 else 1, signed=True)) for tick in ticks),
        x(0.0),
        bottom,
        bottom + _BOTTOM,
        left,
    )


def nice(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`.

    >>> nice(0, 0.43)
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    >>> nice(3, 3)
    [2.0, 2.5, 3.0, 3.5, 4.0]
    """
    if high - low < 1e-9:
        low, high = (low - 1, high + 1) if abs(low) > 1e-9 else (0.0, 1.0)
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(step * i, 12) + 0.0 for i in range(first, last + 1)]


def _text(tick: float, ticks: Sequence[float]) -> str:
    step = ticks[1] - ticks[0]
    return f"{tick:.{max(0, -floor(log10(step) + 1e-9)) + (1 if _odd(step) else 0)}f}"


def _odd(step: float) -> bool:
    """Whether a step such as 0.25 needs one more digit than its power of ten."""
    scaled = step / 10.0 ** floor(log10(step) + 1e-9)
    return abs(scaled - round(scaled)) > 1e-6
