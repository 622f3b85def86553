"""Anything that can be said in a version comes back the same, through both codecs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire import reference
from kafkawire.messages import REGISTRY
from tests.strategies import EXAMPLES, messages, versions
from tests.vectors import NAMES


@pytest.mark.parametrize("name", NAMES)
@EXAMPLES
@given(data=st.data())
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    version = data.draw(versions(name))
    message = data.draw(messages(name, version))
    written = message.encode(version)
    read = REGISTRY.load(name).decode(written, version)
    assert read == message
    assert read.encode(version) == b"".join(read.encode_buffers(version)) == written
    assert reference.encode(name, version, message) == written
    parsed = reference.parse(name, version, written)
    assert parsed.error is None
    assert parsed.values == reference.values_of(message)
    assert parsed.flaws == ()
    assert b"".join(leaf.raw for leaf in parsed.tree.leaves()) == written
