"""Every class of a message explains itself, compiled or interpreted: its purpose and its fields."""

from __future__ import annotations

import inspect
import pydoc

import pytest

from kafkawire.messages import REGISTRY
from kafkawire.reference.schemas import message_model
from tests.vectors import NAMES


def words(text: str) -> str:
    return " ".join(text.replace('"', "'").split())


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_has_the_purpose_of_a_message_and_of_each_field(name: str) -> None:
    message = message_model(name)
    module = inspect.getmodule(REGISTRY.load(name))
    for struct in message.structs:
        text = inspect.getdoc(getattr(module, struct.name)) or ""
        assert words(text.split("\n\n")[0]) == words(struct.about or f"Part of {name}.")
        for f in struct.fields:
            versions = str(f.versions.open_from(message.versions.high))
            purpose = f": {f.about}" if f.about else ""
            assert words(f"{f.attribute} ({versions}){purpose}") in words(text), struct.name


def test_help_shows_fields_and_functions() -> None:
    text = pydoc.plain(pydoc.render_doc(REGISTRY.load("HeartbeatRequest")))
    generation = "From the last JoinGroup; another one is refused with ILLEGAL_GENERATION."
    assert f"generation_id (0+): {generation}" in words(text.replace("\n |", " "))
    assert "Read a whole message body; DecodeError names the field and the byte" in text
    assert "Encode the message in a version; EncodeError names the field" in text
