"""Reading, checking, building and rendering take time in proportion to a schema's size.

What is counted is calls of Python functions, at a size and at ten times that: no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.reference.graph import graph
from kafkawire_codegen import model
from kafkawire_codegen.evolution import compare
from kafkawire_codegen.layout import MOST_SPOTS
from kafkawire_codegen.render import render_message
from kafkawire_codegen.schema import SchemaErrors, check_file, load_file
from kafkawire_codegen.show import show
from tests.calls import calls

from .hostile import Document, field, message

STEEPEST: Final = 15
"""How many times the work ten times the size may be; constant shares make it less than 10."""


def nested(size: int) -> Document:
    """Common structs that each hold the next one twice: unfolded, 2 to the power of `size`."""
    structs = [
        {
            "name": f"S{n}",
            "versions": "0+",
            "fields": [field("A", f"S{n + 1}"), field("B", f"[]S{n + 1}")],
        }
        for n in range(size)
    ]
    last = {"name": f"S{size}", "versions": "0+", "fields": [field("A", "int8")]}
    return message("M", field("A", "S0"), commonStructs=[*structs, last])


def wide(size: int) -> Document:
    """Many fields of one struct, plain and tagged, of every sort."""
    kinds = ["int32", "string", "[]string", "uuid", "[]bytes"]
    return message(
        "M",
        *(field(f"F{n}", kinds[n % 5], "1+", default=None) for n in range(size)),
        *(
            field(f"T{n}", kinds[n % 5], taggedVersions="1+", tag=n, ignorable=True)
            for n in range(size)
        ),
    )


def many_structs(size: int) -> Document:
    """Many structs side by side, whose defaults are structs too."""
    inner = [field("X", "string", default='"'), field("Y", "[]int8", nullableVersions="1+")]
    return message("M", *(field(f"F{n}", f"S{n}", "1+", fields=inner) for n in range(size)))


def many_versions(size: int) -> Document:
    """A field more in each version."""
    fields = [field(f"F{n}", "int8", f"{n}+", nullableVersions="none") for n in range(size)]
    return message("M", *fields, validVersions=f"0-{size}", flexibleVersions=f"{size // 2}+")


def one_common_struct_everywhere(size: int) -> Document:
    """Many places that have the same struct, at versions of their own."""
    shared = {"name": "S", "versions": "0+", "fields": [field("A", "int8"), field("B", "string")]}
    fields = [field(f"F{n}", "[]S", f"{n % 3}-{n % 3}") for n in range(size)]
    return message("M", *fields, commonStructs=[shared])


def long_words(size: int) -> Document:
    """Long names and texts."""
    return message(
        "M",
        field("F" * size, "string", "1+", default='"' * size),
        field("A", "S" * size, "1+", fields=[field("X" * size, "uuid", "2+")]),
        about="\\ " * size,
    )


def wrong_everywhere(size: int) -> Document:
    """A schema whose every field is wrong: as many errors as fields, each found once."""
    structs = [
        {"name": f"S{n}", "versions": "0+", "fields": [field("A", "int8")]} for n in range(size)
    ]
    return message("M", *(field(f"F{n}", f"T{n}") for n in range(size)), commonStructs=structs)


SHAPES: Final[dict[str, tuple[Callable[[int], Document], int]]] = {
    "nested": (nested, 3),
    "wide": (wide, 40),
    "many_structs": (many_structs, 20),
    "many_versions": (many_versions, 30),
    "one_common_struct_everywhere": (one_common_struct_everywhere, 30),
    "long_words": (long_words, 100),
}


def written(directory: Path, document: Document) -> Path:
    path = directory / "M.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


@pytest.mark.parametrize("shape", SHAPES)
def test_generating_takes_time_in_proportion(shape: str, tmp_path: Path) -> None:
    make, size = SHAPES[shape]
    counted: list[tuple[int, int]] = []
    for number in (size, 10 * size):
        path = written(tmp_path, make(number))
        texts: list[str] = []

        def generate(path: Path = path, texts: list[str] = texts) -> None:
            texts.append(render_message(model.build(load_file(path))).text)

        counted.append((calls(generate), len(texts[0])))
        compile(texts[0], "m.py", "exec")
    (few, short), (many, long) = counted
    assert many < STEEPEST * few
    assert long < STEEPEST * short


@pytest.mark.parametrize("shape", ["nested", "wide", "many_structs"])
def test_the_reference_codec_is_made_in_proportion(shape: str, tmp_path: Path) -> None:
    make, size = SHAPES[shape]
    models = [
        model.build(load_file(written(tmp_path, make(number)))) for number in (size, 10 * size)
    ]
    few, many = (calls(partial(graph, each, 2)) for each in models)
    assert many < STEEPEST * few


def test_a_table_takes_time_by_what_changes_not_by_versions(tmp_path: Path) -> None:
    counted = []
    for number in (300, 30_000):
        document = message("M", field("A", "int8", "7+"), validVersions=f"0-{number}")
        schema = load_file(written(tmp_path, document))
        counted.append(calls(partial(show, schema)))
        assert [str(each) for each in show(schema).columns] == ["0", "1-6", f"7-{number}"]
    assert counted[0] == counted[1]


def test_errors_take_time_in_proportion(tmp_path: Path) -> None:
    counted = []
    for number in (150, 1500):
        path = written(tmp_path, wrong_everywhere(number))
        counted.append(calls(partial(check_file, path)))
    few, many = counted
    assert many < STEEPEST * few


def test_a_table_of_a_million_fields_is_refused_before_it_is_made(tmp_path: Path) -> None:
    schema = load_file(written(tmp_path, nested(25)))
    uses: list[Callable[[], Any]] = [lambda: show(schema), lambda: compare([schema], [schema])]
    for use in uses:
        with pytest.raises(SchemaErrors, match=f"{MOST_SPOTS} at most") as caught:
            use()
        assert caught.value.errors[0].line == 1


def test_a_message_of_nested_structs_still_works(tmp_path: Path) -> None:
    """What is not linear by nature, instances of default structs, is not made by loading them."""
    message = model.build(load_file(written(tmp_path, nested(10))))
    assert len(message.structs) == 12
    assert all(str(struct.versions) == "0-2" for struct in message.structs)


def test_thousands_of_tagged_fields_can_be_imported(tmp_path: Path) -> None:
    """In one chain of elif they would be nested as deep as there are many."""
    text = render_message(model.build(load_file(written(tmp_path, wide(3000))))).text
    compile(text, "m.py", "exec")
