"""What is passed to workers, and what waits for its turn, is not copied more often than needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from typing import Final

import pytest

from kafkawire.capture.frames.decoding import RawFrame
from kafkawire.capture.frames.serialised import Packer, pack
from kafkawire.capture.jsonl.rows import MAX_SPARE, Lines
from kafkawire.capture.multifile import Traffic
from kafkawire_cli import pipes
from kafkawire_cli.parallel.pool import Pool
from kafkawire_cli.parallel.shared_memory import Apart, Joined, SharedMemory, pickled
from kafkawire_cli.parallel.worker import Done, _BufferedRun
from kafkawire_cli.render.messages import Printed
from tests.capture.jsonl.test_quick_text import NATIVE
from tests.conftest import FIXTURES

CAPTURE: Final = FIXTURES / "captures" / "kcat-kf.pcap"


class Chunks(BytesIO):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.of: list[object] = []

    def write(self, data: object, /) -> int:
        assert isinstance(data, memoryview)
        self.of.append(data.obj)
        return super().write(data)


def test_text_is_written_without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    text, out = b"x" * (2 * pipes.WRITE_BYTES + 1), Chunks()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(out))
    pipes.write(text)
    assert out.getvalue() == text
    assert len(out.of) == 3
    assert all(each is text for each in out.of)


def test_frames_are_put_behind_their_header_as_they_are() -> None:
    (items, *_) = Traffic([CAPTURE]).item_batches()
    header, frames = Packer().pack_apart(items)
    assert header.frames == b""
    raw_frames = [one.item for one in items if isinstance(one.item, RawFrame)]
    assert all(mine is one.frame for mine, one in zip(frames, raw_frames, strict=True))
    memory = SharedMemory(1 << 20)
    for _ in range(3):
        task = pickled(Apart(header, frames))
        assert task.size == sum(map(len, [*task.parts, *frames]))
        span = memory.put(task)
        assert span is not None
        assert memory.value(span) == Joined(header, pack(items).frames)
    memory.free()
    memory.close()


def test_pieces_that_do_not_fit_are_not_put() -> None:
    memory = SharedMemory(4096)
    assert memory.put(pickled(Apart("x", [b"y" * 4000, b"z" * 97]))) is None
    span = memory.put(pickled(Apart("x", [])))
    assert span is not None
    assert memory.value(span) == Joined("x", b"")
    memory.close()


def test_output_of_a_worker_waits_where_it_was_written() -> None:
    run, text = _BufferedRun(2), bytearray(b"rows")
    run.add([memoryview(text)])
    taken = run.take()
    entry = next(taken)
    assert not isinstance(entry, Done)
    (piece,) = entry
    assert isinstance(piece, memoryview)
    assert piece.obj is text
    assert list(taken) == []
    text.clear()  # nothing views it any more


def test_output_of_this_process_waits_where_it_was_written() -> None:
    def run_task(_: object) -> Iterator[Printed]:
        yield Printed(b"", True)

    output = Pool[None, Printed](1, run_task, 1, 1 << 12, is_output=True)
    text = bytearray(b"rows")
    try:
        assert output.submit(lambda _: None) == 0
        assert list(output.add(Printed(memoryview(text), True), 4)) == []
        *_, last = (one.text.obj for one in output.drain() if isinstance(one.text, memoryview))
        assert last is text
        text.clear()
    finally:
        output.close()


def test_lines_are_written_into_buffers_that_nothing_views() -> None:
    (items, *_) = Traffic([CAPTURE]).item_batches()
    lines = Lines("c")
    wanted = [Lines("c").text(items[:at]) for at in range(1, 2 * MAX_SPARE)]
    for _ in range(2):
        views = [lines.view(items[:at]) for at in range(1, 2 * MAX_SPARE)]
        assert views == wanted
        assert len(lines.spare) == (MAX_SPARE if NATIVE else 0)
        buffers = {id(each) for each in (lines.out, *lines.spare)}
        for view in views:
            view.release()
        for text in wanted:  # one after the other: no other buffers are made
            with lines.view(items[: 1 + wanted.index(text)]) as view:
                assert view == text
        assert {id(each) for each in (lines.out, *lines.spare)} == buffers
