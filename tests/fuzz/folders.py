"""Releases of nearly the right shape: a right one in which some things are wrong."""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

# What stands in the place of a right value.
ODD = [
    *(None, True, False, 0, 1, -1, 2, 10**30, 0.5, -0.0, float("nan"), float("inf"), 1e308),
    *(
        "",
        " ",
        "0",
        "1",
        "A",
        "E",
        "Yes",
        "no.",
        "(B) Red",
        "1, 2, 3",
        "Round 1",
        "\x00",
        "\ud800",
        "\u202e",
        "{answer}",
    ),
    *("../v.mp4", "/etc/passwd", "a/b.mp4", "C:\\v.mp4", "v\n.mp4", "v", "ü.mp4", "u\u0308.mp4", "x" * 300, "9" * 5000),
    *([], {}, [None], [[]], {"": ""}, {"Round 1": {}}, ["A", "B"], [1, 2], {"A": 1, "B": 2}, [["q", "a"]]),
]
KEYS = [
    "",
    "id",
    "video",
    "Round 2",
    "round 2",
    f"Round {'9' * 5000}",
    "Q1",
    "A1",
    f"Q{'9' * 5000}",
    "answer",
    "\ud800",
]
KEYS += ["\x00", "Round ٣", "options", "question", "seconds", "excluded", "../v.mp4", "query", "Q²"]
CHANGES = ["replace", "remove", "rename", "repeat", "wrap", "double"]
NAMES = ["{}", "{}", "{}", "deep/er/{}", ".{}", "__MACOSX/{}", "a\nb/{}", "ü/{}", "{}.json", "\udcff/{}", "{}/{}"]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _places(value[key])


@st.composite
def damaged(draw: st.DrawFn, right: Any) -> Any:
    """A JSON value with up to four things changed."""
    value = [copy.deepcopy(right)]
    for _ in range(draw(st.integers(0, 4))):
        places = list(_places(value))
        if not places:
            break
        of, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(CHANGES))
        if change == "replace":
            of[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif change == "remove" and of is not value:
            del of[key]
        elif change == "rename" and isinstance(of, dict):
            of[draw(st.sampled_from(KEYS))] = of.pop(key)
        elif change == "repeat" and isinstance(of, list) and of is not value:
            of.append(copy.deepcopy(of[key]))
        elif change == "wrap":
            of[key] = [of[key]]
        elif change == "double" and isinstance(of[key], str):
            of[key] += of[key]
    return value[0]


@st.composite
def written(draw: st.DrawFn, right: Any, lines: bool = False) -> bytes:
    """A damaged value as a file, which may be damaged too."""
    value = draw(damaged(right))
    ascii_only = draw(st.booleans())
    if lines and isinstance(value, list):
        text = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in value)
    else:
        text = json.dumps(value, ensure_ascii=ascii_only)
    data = text.encode(draw(st.sampled_from(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "latin-1"])), "replace")
    match draw(st.sampled_from(["whole"] * 12 + ["cut", "more", "inside", "deep", "empty"])):
        case "cut":
            return data[: draw(st.integers(0, len(data)))]
        case "more":
            return data + draw(
                st.sampled_from([b"\n", b"\x00", b"}", b"\n{}", b"\n\n[]\n", b"\xff", b"\n\xe2\x80\xa8"])
            )
        case "inside":
            place = draw(st.integers(0, len(data)))
            return data[:place] + draw(st.binary(max_size=4)) + data[place:]
        case "deep":
            return b"[" * 100_000
        case "empty":
            return b""
    return data


def place(folder: Path, files: dict[str, bytes], names: list[str]) -> Path:
    """Writes files below a folder, each in a place of its own; a name that the disk refuses is left out."""
    for (name, data), form in zip(files.items(), names, strict=True):
        path = folder / form.replace("{}", name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            continue
    return folder


def names(number: int) -> st.SearchStrategy[list[str]]:
    """Where each of some files lies."""
    return st.lists(st.sampled_from(NAMES), min_size=number, max_size=number)


def around(folder: Path) -> None:
    """What may lie beside a release: links in a circle, links to nothing, a folder named as a file, no UTF-8."""
    (folder / "around").symlink_to(folder)
    (folder / "gone.json").symlink_to(folder / "nothing")
    (folder / "folder.jsonl").mkdir()
    with open(os.fsencode(folder / "x") + b"\xff.txt", "wb"):
        pass
