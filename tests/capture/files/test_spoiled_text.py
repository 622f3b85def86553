"""Text about packets whose lines were lost, joined, cut or typed over: it is read, or refused."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any, Final

import pytest
from hypothesis import given

from kafkawire.capture.multifile import Traffic
from kafkawire.errors import CaptureError
from kafkawire_cli.input.inputs import InputError, recognise
from tests.capture.files.test_calls import TRACED
from tests.capture.files.test_streams import FOLLOWED
from tests.capture.printing import printed, recorded, streams, tshark
from tests.spoiled import EDITS, SHARES, Edit, spoiled

PACKETS: Final = 8


FORMS: Final = ("tcpdump", "tshark", *FOLLOWED, *TRACED)
CALLS: Final = 40


@cache
def text_of(form: str) -> bytes:
    """Print some packets, a stream or some calls."""
    packets = recorded()[:PACKETS]
    if form == "tcpdump":
        return printed(packets)
    if form == "tshark":
        return "".join(map(tshark, packets)).encode()
    if form in TRACED:
        return "\n".join(TRACED[form]().splitlines()[:CALLS]).encode()
    port, sent = next(iter(streams().items()))
    return FOLLOWED[form](port, sent[:PACKETS]).encode()


@pytest.mark.parametrize("form", FORMS)
@given(first=SHARES, edits=EDITS)
def test_spoiled_text_is_read_or_refused(form: str, first: float, edits: list[Edit]) -> None:
    text = spoiled(text_of(form), first, edits)
    try:
        recognise(text, "text")
        items: list[Any] = list(Traffic([BytesIO(text)]))
    except (CaptureError, InputError):
        return
    assert all(item is not None for item in items)
