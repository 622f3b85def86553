"""The heads of the handlers: the versions of their APIs, and what each added."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from kafkawire import REGISTRY, ApiKey, Structure
from kafkawire.broker.apis import APIS, Listener
from kafkawire.broker.handlers import HANDLERS
from kafkawire.primitives.index import MessageInfo
from kafkawire.primitives.structure import FieldRow

HEADED = [
    key
    for key in HANDLERS
    if APIS[key].handler is None or Listener.ZK_BROKER in APIS[key].listeners
]
"""The APIs whose handler is a module of their own."""

Path = tuple[str, ...]


def fields(cls: type[Structure], above: Path = ()) -> Iterator[tuple[Path, FieldRow]]:
    """Walk the fields of a message, those of its structs too."""
    for row in cls.__fields__:
        path = (*above, row.attribute)
        yield path, row
        inner = getattr(sys.modules[cls.__module__], row.type.removeprefix("[]"), None)
        if isinstance(inner, type) and issubclass(inner, Structure):
            yield from fields(inner, path)


def change(info: MessageInfo, version: int) -> str:
    """Return the fields that a version of a message adds and removes."""
    rows = list(fields(REGISTRY.load(info.name)))

    def names(here: int, there: int) -> list[str]:
        have = {path for path, row in rows if row.first <= here <= row.last}
        had = {path for path, row in rows if row.first <= there <= row.last}
        new = [path for path, _ in rows if path in have - had]
        outer = [p for p in new if not any(p[:at] in have - had for at in range(1, len(p)))]
        return list(dict.fromkeys(path[-1] for path in outer))

    added = [f"+{name}" for name in names(version, version - 1)]
    return " ".join([*added, *(f"-{name}" for name in names(version - 1, version))])


def expected_head(name: str) -> dict[int, str]:
    """Return the expected version table of an API's handler."""
    infos = REGISTRY.get(f"{name}Request"), REGISTRY.get(f"{name}Response")
    head = {}
    for version in range(infos[0].first, infos[0].last + 1):
        parts = ["the first"] if version == infos[0].first else []
        for info, word in zip(infos, ("request", "response"), strict=True):
            changes = change(info, version) if not parts or parts[0] != "the first" else ""
            parts += [f"{word} {changes}"] if changes else []
        parts += ["flexible"] if version == infos[0].flexible else []
        head[version] = "; ".join(parts) or "no new fields"
    return head


@pytest.mark.parametrize("key", HEADED)
def test_a_handler_is_headed_by_its_versions_and_what_each_added(key: ApiKey) -> None:
    info = REGISTRY.request(key)
    assert info is not None
    name = info.name.removesuffix("Request")
    doc = sys.modules[HANDLERS[key].__name__].__doc__  # type: ignore[attr-defined]
    assert doc is not None
    title, table = doc.split("\n\n", 1)
    assert title.startswith(f"{name}: ")
    entries = re.split(r"^v(\d+) +", table, flags=re.MULTILINE)[1:]
    reported = {
        int(version): " ".join(text.split()).split(" │ ")[0]
        for version, text in zip(entries[::2], entries[1::2], strict=True)
    }
    assert reported == expected_head(name)
