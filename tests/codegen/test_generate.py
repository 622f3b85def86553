"""Generation as a build step: other people's schemas, stable output, and codecs that write what the
dialect says.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafkawire.errors import (
    DecodeError,
    FieldNotInVersion,
    InvalidTag,
    NullNotAllowed,
    OutOfRange,
)
from kafkawire_codegen import generate, schemas_dir
from kafkawire_codegen.__main__ import main
from kafkawire_codegen.targets import generate_target

SCHEMA = """\
// A request with every odd corner of the dialect.
{
  "apiKey": 7000,
  "type": "request",
  "listeners": ["broker"],
  "name": "OddRequest",
  "about": "Exercises what ordinary messages do not.",
  "validVersions": "0-2",
  "flexibleVersions": "1+",
  "fields": [
    { "name": "Moved", "type": "int32", "versions": "0+", "taggedVersions": "1+", "tag": "0",
    "default": "0x10" }, { "name": "class", "type": "string", "versions": "0+", "nullableVersions":
    "1+" }, { "name": "Version", "type": "int16", "versions": "0+" }, { "name": "Flags", "type":
    "[]bool", "versions": "2+", "nullableVersions": "2+", "default": "null" }, { "name": "Ports",
    "type": "[]uint16", "versions": "0", "ignorable": true }, { "name": "Blobs", "type": "[]bytes",
    "versions": "1+" }, { "name": "Ratio", "type": "float64", "versions": "0", "default": "1.5",
    "ignorable": true }, { "name": "Extra", "type": "Point", "taggedVersions": "2+", "tag": 1,
    "nullableVersions": "2+", "default": "null" }, { "name": "Origin", "type": "Point", "versions":
    "2+" }
  ],
  "commonStructs": [
    { "name": "Point", "versions": "2+", "fields": [
      { "name": "X", "type": "int8", "versions": "2+", "default": -1 },
      { "name": "Y", "type": "uint32", "versions": "2+" }
    ]}
  ]
}
"""

RESPONSE = """\
{
  "apiKey": 7000,
  "type": "response",
  "name": "OddResponse",
  "validVersions": "0-2",
  "flexibleVersions": "1+",
  "fields": []
}
"""


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[ModuleType]:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "OddRequest.json").write_text(SCHEMA)
    (schemas / "OddResponse.json").write_text(RESPONSE)
    generate(schemas, tmp_path / "odd_messages", "odd_messages")
    sys.path.insert(0, str(tmp_path))
    try:
        yield importlib.import_module("odd_messages")
    finally:
        sys.path.remove(str(tmp_path))
        for name in [name for name in sys.modules if name.startswith("odd_messages")]:
            del sys.modules[name]


def test_a_generated_package_has_its_own_registry_and_api_keys(odd: ModuleType) -> None:
    assert {info.name for info in odd.REGISTRY} == {"OddRequest", "OddResponse"}
    assert odd.REGISTRY.request(7000).is_flexible(1)
    assert odd.OddRequest is odd.REGISTRY.load("OddRequest")
    assert importlib.import_module("odd_messages.api_key").ApiKey.ODD == 7000


BYTES = [
    (0, {"moved": 5, "class_": "k", "version": 2}, "0000000500016b0002000000003ff8000000000000"),
    (0, {"class_": "k", "ports": [65535]}, "0000001000016b000000000001ffff3ff8000000000000"),
    (1, {"class_": None}, "0000000100"),
    (1, {"class_": "k", "moved": 5, "blobs": [b"ab"]}, "026b00000203616201000400000005"),
    (2, {"class_": "k"}, "026b00000001ff000000000000"),
    (2, {"class_": "k", "flags": [True, False]}, "026b000003010001ff000000000000"),
]


@pytest.mark.parametrize(("version", "fields", "text"), BYTES)
def test_encoding_follows_the_dialect(
    odd: ModuleType, version: int, fields: dict[str, object], text: str
) -> None:
    message = odd.OddRequest(**fields)
    assert message.encode(version).hex() == text
    again = odd.OddRequest.decode(bytes.fromhex(text), version)
    assert again == message
    assert again.encode(version).hex() == text


def test_a_nullable_struct_in_a_tag_is_marked_by_one_byte(odd: ModuleType) -> None:
    point = type(odd.OddRequest().origin)
    message = odd.OddRequest(class_="k", extra=point(x=1, y=2))
    text = "026b00000001ff000000000001010701010000000200"
    assert message.encode(2).hex() == text
    assert odd.OddRequest.decode(bytes.fromhex(text), 2) == message


def test_a_set_field_that_the_version_lacks_is_refused_unless_ignorable(odd: ModuleType) -> None:
    odd.OddRequest(class_="k", ratio=9.0, ports=[1]).encode(1)
    with pytest.raises(FieldNotInVersion, match="blobs"):
        odd.OddRequest(class_="k", blobs=[b""]).encode(0)
    with pytest.raises(FieldNotInVersion, match="extra"):
        odd.OddRequest(class_="k", extra=type(odd.OddRequest().origin)()).encode(1)
    with pytest.raises(NullNotAllowed, match="class_"):
        odd.OddRequest(class_=None).encode(0)


def test_a_tag_at_a_version_without_it_is_an_error_and_lenient_keeps_it(odd: ModuleType) -> None:
    data = bytes.fromhex("026b00000101010100")
    with pytest.raises(InvalidTag):
        odd.OddRequest.decode(data, 1)
    message = odd.OddRequest.decode(data, 1, lenient=True)
    assert message.unknown_tags == [(1, b"\x00")]
    assert message.deviations.misplaced_tags == 1
    assert message.encode(1) == data


def test_failures_of_other_packages_name_the_field_and_the_byte(odd: ModuleType) -> None:
    with pytest.raises(DecodeError) as caught:
        odd.OddRequest.decode(b"\x00\x00\x00\x05\x00\x09", 0)
    assert (caught.value.path, caught.value.offset) == ("OddRequest.class_", 6)
    point = type(odd.OddRequest().origin)
    with pytest.raises(OutOfRange) as refused:
        odd.OddRequest(class_="k", extra=point(x=1, y=-1)).encode(2)
    assert refused.value.path == "OddRequest.extra.y"


# -- the build step


def test_output_is_the_same_from_run_to_run_and_unchanged_files_keep_their_time(
    tmp_path: Path,
) -> None:
    first = generate(schemas_dir(), tmp_path / "a", "kafkawire.messages")
    generate(schemas_dir(), tmp_path / "b", "kafkawire.messages")
    assert len(first.modules) == 292
    for path in (tmp_path / "a").glob("*.py"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").glob("*.py")}
    assert generate(schemas_dir(), tmp_path / "a", "kafkawire.messages").changed == 0
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "a").glob("*.py")}


def test_paths_are_texts_too_and_a_check_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schemas").mkdir()
    Path("schemas/OddRequest.json").write_text(SCHEMA)
    Path("schemas/OddResponse.json").write_text(RESPONSE)
    checked = generate("schemas", "odd", "odd", check=True)
    assert not Path("odd").exists()
    made = generate(["schemas"], "odd", "odd")
    assert checked == made
    assert set(made.changed_files) == {path.name for path in Path("odd").iterdir()}
    assert generate("schemas", "odd", "odd", check=True).changed_files == ()
    targets = generate_target("wireshark", "schemas", "lua", "odd", check=True)
    assert (targets.changed_files, Path("lua").exists()) == (("odd.lua",), False)


def test_the_module_of_the_generator_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "OddRequest.json").write_text(SCHEMA)
    (tmp_path / "OddResponse.json").write_text(RESPONSE)
    command = ["--schemas", str(tmp_path), "--package", "odd", "--out", str(tmp_path / "odd")]
    assert main([*command, "--check"]) == 1
    assert "odd_request.py" in capsys.readouterr().out.split()
    assert not (tmp_path / "odd").exists()
    assert main(command) == 0
    assert main([*command, "--check"]) == 0


def test_a_module_whose_schema_is_gone_is_removed(tmp_path: Path) -> None:
    (tmp_path / "stale_request.py").write_text('"""Stale. Generated: do not edit."""\n')
    generate(schemas_dir(), tmp_path, "kafkawire.messages")
    assert not (tmp_path / "stale_request.py").exists()


def test_a_file_that_somebody_wrote_is_neither_removed_nor_overwritten(tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "OddRequest.json").write_text(SCHEMA)
    (schemas / "OddResponse.json").write_text(RESPONSE)
    (tmp_path / "theirs.py").write_text("x = 1\n")
    generate(schemas, tmp_path, "odd")
    (tmp_path / "odd_request.py").unlink()
    (tmp_path / "__init__.py").write_text("y = 2\n")
    with pytest.raises(FileExistsError, match="not generated"):
        generate(schemas, tmp_path, "odd")
    assert (tmp_path / "theirs.py").read_text() == "x = 1\n"
    assert (tmp_path / "__init__.py").read_text() == "y = 2\n"
    assert not (tmp_path / "odd_request.py").exists()


def test_generated_lines_fit_and_import_only_what_they_use() -> None:
    import subprocess

    out = Path(importlib.import_module("kafkawire.messages").__file__ or "").parent
    command = [
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F,I,E",
        "--line-length",
        "100",
        "--quiet",
    ]
    ran = subprocess.run(
        [sys.executable, "-m", *command, str(out)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[:2000]


def test_the_module_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "OddRequest.json").write_text(SCHEMA)
    (schemas / "OddResponse.json").write_text(RESPONSE)
    out = tmp_path / "out"
    assert main(["--schemas", str(schemas), "--package", "odd", "--out", str(out)]) == 0
    assert "2 messages" in capsys.readouterr().out
    (schemas / "OddRequest.json").write_text(SCHEMA.replace('"int32"', '"int33"'))
    assert main(["--schemas", str(schemas), "--package", "odd", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "OddRequest.json:11:" in said
    assert "int33" in said
