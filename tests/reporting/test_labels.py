"""Names, images and links of items from a table of the user, and what is left out of it."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from prudent.base.errors import LogError
from prudent.reporting.labels import BUDGET, MOST_BYTES, Label, Labels, is_address
from tests.reporting.hostile import GOOD_LINK, IMAGES, LINKS, PAYLOADS, pixels, write_hostile_names

ROWS: list[dict[str, Any]] = [
    {"item": "i1", "name": "Boot, brown", "image": "i1.png", "link": "https://shop.example/i1"},
    {"item": "i2", "name": None, "image": None, "link": None},
    {"item": "007", "name": "Bond", "image": "none.png", "link": "ftp://x"},
]


def write(folder: Path, form: str) -> Any:
    if form == "frame":
        return pa.Table.from_pylist(ROWS)
    to = folder / f"names.{form}"
    if form == "csv":
        with to.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*ROWS[0], "price"])
            writer.writeheader()
            writer.writerows([{**row, "price": "9"} for row in ROWS])
    elif form == "jsonl":
        to.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        rows = pa.Table.from_pylist(ROWS)
        duckdb.sql(f"copy (from rows) to '{to}'")
        assert rows.num_rows == 3
    return to


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame"])
def test_names_are_read_from_files_and_tables(form: str, tmp_path: Path) -> None:
    labels = Labels(write(tmp_path, form))
    assert labels.of_items(["i1", "i2", "007", "unknown"]) == {
        "i1": Label("Boot, brown", "i1.png", "https://shop.example/i1"),
        "i2": Label(),
        "007": Label("Bond", "none.png", "ftp://x"),
    }
    assert labels.of_items([7]) == {}  # 007 is no 7
    assert labels.of_contexts(["i1"]) == {}


def test_an_image_is_embedded_once_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    (tmp_path / "i1.png").write_bytes(pixels())
    labels = Labels(write(tmp_path, "csv"))
    known = labels.of_items(["i1", "007"])
    shown = labels.shown("i1", known)
    assert shown["image"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert {**shown, "image": ""} == {
        "item": "i1",
        "name": "Boot, brown",
        "link": "https://shop.example/i1",
        "image": "",
    }
    assert (
        labels.shown("007", known)
        == labels.shown("007", known)
        == {"item": "007", "name": "Bond", "link": "", "image": ""}
    )
    assert labels.shown("new", known) == {"item": "new", "name": "", "link": "", "image": ""}
    assert labels.notes == [
        "Not shown: 1 links that are not http or https addresses.",
        "Not shown: 1 images that are not files in the folder of their table.",
    ]


def test_integers_and_contexts_have_names_too() -> None:
    table = pa.table({"item": [7, None], "context": [None, 9], "name": ["seven", "nine"]})
    labels = Labels(table)
    assert labels.of_items([7, 9]) == {7: Label("seven")}
    assert labels.of_contexts([7, 9]) == {9: "nine"}


def test_hostile_links_and_images_are_left_out(tmp_path: Path) -> None:
    labels = Labels(write_hostile_names(tmp_path))
    known = labels.of_items(PAYLOADS)
    shown = [labels.shown(name, known) for name in PAYLOADS]
    links, images = {one["link"] for one in shown}, {one["image"] for one in shown}
    assert links == {"", GOOD_LINK}
    assert {image[:22] for image in images} == {"", "data:image/png;base64,"}
    assert sum(bool(one["image"]) for one in shown) == sum(
        IMAGES[at % len(IMAGES)] == "pixel.png" for at in range(len(PAYLOADS))
    )
    assert max(len(one["name"]) for one in shown) <= 400  # of a million


@pytest.mark.parametrize("link", LINKS)
def test_what_is_no_address_is_no_link(link: str) -> None:
    assert not is_address(link)


def test_addresses_of_images_are_shown_only_where_they_are_asked_for() -> None:
    table = pa.table({"item": ["a"], "image": ["https://x.example/a.png"]})
    for asked in (False, True):
        labels = Labels(table, remote_images=asked)
        image = labels.shown("a", labels.of_items(["a"]))["image"]
        assert image == ("https://x.example/a.png" if asked else "")
        assert bool(labels.notes) != asked


def test_large_images_and_too_many_are_left_out(tmp_path: Path) -> None:
    rows = []
    for number in range(60):
        (tmp_path / f"{number}.png").write_bytes(pixels() + bytes([number]) * 45_000)
        rows.append(f"i{number},{number}.png")
    (tmp_path / "large.png").write_bytes(pixels() + bytes(MOST_BYTES))
    (tmp_path / "names.csv").write_text("\n".join(["item,image", *rows, "large,large.png"]))
    labels = Labels(tmp_path / "names.csv")
    items = [*(f"i{number}" for number in range(60)), "large"]
    known = labels.of_items(items)
    drawn = [name for name in items if labels.shown(name, known)["image"]]
    assert drawn == items[: len(drawn)]  # the first ones
    assert 45_000 * len(drawn) < BUDGET < 45_200 * (len(drawn) + 1)
    assert labels.notes == [
        f"Not shown: {60 - len(drawn)} images beyond 2 MB in all.",
        "Not shown: 1 images larger than 50 kB.",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"item": ["a"]}, "has no names: it needs a column item or context, and any of name, image and link"),
        ({"name": ["a"]}, "It has: name"),
        ({"item": ["a", "a"], "name": ["x", "y"]}, "has several rows for the item 'a'"),
        ({"item": ["a"], "context": ["b"], "name": ["x"]}, "1 rows of the Table name an item and a context"),
        ({"item": [1.5], "name": ["x"]}, "item"),
    ],
)
def test_a_table_that_is_none_of_names_is_an_error(table: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError, match=message):
        Labels(pa.table(table))
