"""The reference page of the Python API: every name in `prudent.__all__`, with the classes of the results."""

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args, get_type_hints

import prudent
from prudent.base import errors

INTRO = """\
# Python

Every name here is importable from `prudent`. Classes that are written with their module are results of the functions
above them. Functions take a path or an object for a log, counts or a policy; see the signatures.
"""

SECTIONS = {
    "Logs and counts": ("Log", "readers", "count", "Counts", "compact", "split"),
    "Policies": ("rank", "rank_baseline", "Policy", "diff", "export"),
    "Judgments": ("judge", "Judgments"),
    "Exploration": ("explore", "Exploration"),
    "Evaluation": ("evaluate", "gate", "gate_contexts", "plan", "verify", "report"),
    "Click models and bounds": ("check", "compare", "tune", "click_models", "bounds", "baselines"),
    "Engines": ("DuckDB", "Spark"),
}

MODULES = {
    "baselines": """\
`prudent.baselines` has the [baselines](baselines.md): `prudent.baselines.parse("ips(clip=50)")`, and back with `str`.
""",
    "bounds": """\
`prudent.bounds` has the [bounds](bounds.md): `prudent.bounds.parse("eb(delta=0.2)")` is the bound of a spelling, and
`str` gives the spelling of a bound.
""",
    "click_models": """\
`prudent.click_models` has the [click models](click-models.md): `prudent.click_models.parse("pbm")` is the model of a
spelling, and `str` gives the spelling of a model.
""",
    "readers": """\
`prudent.readers` has the [readers](readers.md) of predefined log formats.
""",
}

ERRORS = """
## Errors

All errors are subclasses of `prudent.PrudentError`. The message says what is wrong and what to do about it. Notes for
the reader of a result, such as a click model that was replaced by another, are of the class `prudent.PrudentWarning`.

"""

RESULTS = tuple(f"prudent.{package}." for package in ("click_models", "policies", "evaluation", "reporting"))


def python_page() -> str:
    """The page; names that no section has come last, so that a new one is never missing."""
    known = {name for names in SECTIONS.values() for name in names} | {name for name, _ in error_classes()}
    more = tuple(name for name in prudent.__all__ if name not in known)
    text = INTRO
    seen = {getattr(prudent, name) for name in prudent.__all__ if isinstance(getattr(prudent, name), type)}
    for title, names in {**SECTIONS, **({"More": more} if more else {})}.items():
        text += f"\n## {title}\n"
        for name in names:
            if name in prudent.__all__:
                text += "\n" + entry(name, getattr(prudent, name), seen)
    return text + ERRORS + "".join(directive("class", where) for _, where in error_classes())


def entry(name: str, thing: Any, seen: set[Any]) -> str:
    """The entry of a public name, and of the classes of its result that are not on the page yet."""
    if isinstance(thing, ModuleType):
        return MODULES.get(name, f"`prudent.{name}`\n")
    kind = "class" if isinstance(thing, type) else "function"
    return directive(kind, f"prudent.{name}", members=kind == "class") + results(thing, seen)


def results(thing: Any, seen: set[Any]) -> str:
    """Entries of the classes that a function returns or an object has, from the annotations."""
    text = ""
    for cls in list(annotated(thing)):
        if cls not in seen:
            seen.add(cls)
            text += directive("class", f"{cls.__module__}.{cls.__qualname__}", members=True, signature="()")
            text += results(cls, seen)
    return text


def annotated(thing: Any) -> Iterator[type]:
    """Result classes in the annotation of a function, or in the fields and methods of a class."""
    if not isinstance(thing, type):
        yield from result_classes(hints(thing).get("return"))
        return
    for hint in hints(thing).values():
        yield from result_classes(hint)
    for name, member in vars(thing).items():
        member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(member):
            yield from result_classes(hints(member).get("return"))


def hints(thing: Any) -> dict[str, Any]:
    """Annotations of public names, as they are written where a name in them is imported for type checkers alone."""
    try:
        annotations = get_type_hints(thing)
    except NameError:
        annotations = thing.__annotations__
    return {name: hint for name, hint in annotations.items() if not name.startswith("_")}


def result_classes(hint: Any) -> Iterator[type]:
    """The classes in an annotation that only results have: those of the upper packages that are not protocols."""
    if isinstance(hint, str):
        loaded = [module for name, module in sys.modules.items() if name.startswith(RESULTS)]
        hint = next((vars(module)[hint] for module in loaded if hint in vars(module)), None)
    if isinstance(hint, type):
        if hint.__module__.startswith(RESULTS) and not getattr(hint, "_is_protocol", False):
            yield hint
        return
    for part in get_args(hint):
        yield from result_classes(part)


def error_classes() -> list[tuple[str, str]]:
    """The errors and the warning, by name, base class first."""
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and cls.__module__ == errors.__name__]
    here = {name: f"prudent.{name}" for name in prudent.__all__}
    return [(cls.__name__, here.get(cls.__name__, f"{errors.__name__}.{cls.__name__}")) for cls in classes]


def directive(kind: str, where: str, members: bool = False, signature: str = "") -> str:
    """An entry that autodoc fills in."""
    shown = "   :members:\n" if members else "   :show-inheritance:\n" if kind == "class" else ""
    return f"```{{eval-rst}}\n.. auto{kind}:: {where}{signature}\n{shown}```\n"
