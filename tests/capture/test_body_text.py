"""JSON straight from the wire: what is written of decoded messages, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.capture.body_text import BodyText, Layout, layout_of
from kafkawire.capture.engine import located, read_sealed
from kafkawire.capture.row_text import Lines
from kafkawire.errors import DecodeError
from kafkawire.messages import REGISTRY
from kafkawire.protocol.json_text import to_json_text
from tests.vectors import NAMES, by_message

from .truth import capture_of, captures

ELEMENTS = 1 << 20


def written(layout: Layout, data: bytes) -> str | None:
    """Write a body, twice where nulls have to be allowed first."""
    for _ in range(2):
        body = BodyText()
        if body.write(layout, data, 0, ELEMENTS):
            return body.out.getvalue().decode("ascii")
        for step in body.doubts:
            step.nulls = True
    return None


def test_what_is_written_of_vectors_is_their_json() -> None:
    plain = count = 0
    for name in NAMES:
        info = REGISTRY.get(name)
        cls = REGISTRY.load(name)
        for row in by_message("messages").get(name, []):
            version, data = row["version"], bytes.fromhex(row["hex"])
            flexible = info.is_flexible(version)
            layout = layout_of(cls, version, flexible, True)
            count += 1
            text = written(layout, data) if layout.plain else None
            if text is not None:
                plain += 1
                assert text == to_json_text(cls.decode(data, version), version), row
    assert plain > count // 3


def test_nothing_is_written_of_what_the_decoder_refuses() -> None:
    refused = 0
    for name in NAMES:
        info = REGISTRY.get(name)
        cls = REGISTRY.load(name)
        for row in by_message("messages").get(name, [])[::25]:
            version, data = row["version"], bytes.fromhex(row["hex"])
            flexible = info.is_flexible(version)
            layout = layout_of(cls, version, flexible, True)
            if not layout.plain or len(data) > 300:
                continue
            for cut in (*range(len(data)), len(data) + 1):
                bad = (data + b"\0")[:cut]
                try:
                    message = cls.decode(bad, version)
                except DecodeError:
                    refused += 1
                    body = BodyText()
                    assert not body.write(layout, bad, 0, ELEMENTS), (row, cut)
                else:
                    text = written(layout, bad)
                    assert text in (None, to_json_text(message, version)), (row, cut)
    assert refused > 500


@pytest.mark.parametrize("truth", captures(), ids=lambda path: path.name)
@pytest.mark.parametrize("options", [(False, True), (True, False)])
def test_lines_of_frames_are_those_of_rows(truth: Path, options: tuple[bool, bool]) -> None:
    told = list(read_sealed(capture_of(truth)))
    straight, opened = Lines("c", *options), Lines("c", *options)
    for _ in range(2):  # what nulls are allowed is known the second time
        expected = "".join(opened.line(*located(one)) + "\n" for one in told)
        assert straight.text(told) == expected
