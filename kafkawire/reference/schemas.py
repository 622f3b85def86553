"""Builds the models of kafkawire's messages from their schemas, on demand."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kafkawire_codegen import model, schemas_dir
from kafkawire_codegen.schema import load_file

from ..errors import UnknownApiKey

MODELS_KEPT: Final = 64


@lru_cache(MODELS_KEPT)
def message_model(name: str) -> model.Message:
    """Read the schema of one message; UnknownApiKey if there is none."""
    path = schemas_dir() / f"{name}.json"
    if not name.isalnum() or not path.is_file():
        raise UnknownApiKey(f"unknown message {name!r}")
    return model.build(load_file(path))
