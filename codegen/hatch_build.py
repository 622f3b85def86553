"""Builds kafkawire's wheel: generates the messages, compiles what KAFKAWIRE_COMPILE selects.

A build without a compiler gives the same package, interpreted, and reports it; native modules
of older sources are removed.

    schemas/*.json --generate--> kafkawire/messages/*.py --compile_modules--> native modules, in
    the wheel, or beside the sources of an editable install

    KAFKAWIRE_COMPILE=off|hot|all   nothing, the messages of everyday traffic (default), or all
    KAFKAWIRE_COMPILE_STRICT=1      fail where the build would fall back to interpreted modules
    KAFKAWIRE_COMPILE_SYMBOLS=1     keep the names of functions in C, for `perf`
    KAFKAWIRE_COMPILE_OPTIMISATION=0  the level of the C compiler: 2 (default), 0 for a quick build
"""

# over 300 lines: the build hook: hatchling loads one file

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
from kafkawire_codegen import generate
from kafkawire_codegen.compile import CFunction, NotCompiled, compile_modules, native_files

MODES: Final = ("off", "hot", "all")

COMPILERS: Final = (
    "librt>=0.16",
    "mypy[mypyc]>=2.4,<3",
    "mypy_extensions>=1.1",
    "setuptools>=77",
)
"""Requirements of a build that compiles, beside those of pyproject.toml."""

CAPTURE: Final = (
    "tcp/out_of_order",
    "frames/apis",
    "frames/bodies",
    "frames/effort",
    "tcp/limits",
    "files/packet_offsets",
    "tcp/connection",
    "exchanges/client_detection",
    "exchanges/response_layouts",
    "frames/other_protocols",
    "exchanges/conversation",
    "copies",
    "engine",
    "tracking",
    "exchanges/exchanges",
    "exchanges/fetch_sessions",
    "tcp/flow",
    "exchanges/waiting",
    "exchanges/in_flight",
    "exchanges/inference",
    "exchanges/message_pairs",
    "exchanges/pairing",
    "frames/serialised",
    "exchanges/endings",
    "tcp/retransmission",
    "tcp/gap_policy",
    "frames/decoding",
    "packets/segment_rows",
    "tcp/reassembly",
    "frames/detection",
    "jsonl/formats",
    "jsonl/records",
    "jsonl/records_fields",
    "jsonl/rows",
    "frames/framing",
    "tcp/connection_table",
    "tables/columns",
    "tables/context",
    "tables/arrow/exchange_columns",
    "tables/arrow/exchange_heads",
    "tables/arrow/pairs",
    "tables/arrow/partition_columns",
    "tables/exchanges",
    "tables/arrow/record_fields",
    "tables/arrow/buffers",
    "tables/extraction/messages",
    "tables/extraction/entities",
    "tables/messages",
    "tables/extraction/body_facts",
    "tables/passes",
    "tables/extraction/partition_fields",
    "tables/extraction/record_batches",
    "tables/records",
    "tables/tasks/making",
    "tables/tasks/pairing",
    "tables/tasks/sessions",
    "tables/tasks/splitting",
)
"""Modules of `kafkawire.capture` that handle every packet or message, without numpy."""

PRODUCER: Final = ("batch", "checking", "partition_queue", "record_accumulator", "sticky")
"""Modules of `kafkawire.client.producer` that handle every record."""

COMPRESSION: Final = tuple(
    f"kafkawire/records/compression/{name}.py"
    for name in ("bounds", "codecs", "decompression", "gzip", "lz4", "snappy", "zstd")
)
"""Codecs of records."""

RUNTIME: Final = (
    *(f"kafkawire/capture/{name}.py" for name in CAPTURE),
    *(f"kafkawire/client/producer/{name}.py" for name in PRODUCER),
    "kafkawire/primitives/generated.py",
    "kafkawire/primitives/limits.py",
    "kafkawire/primitives/reader.py",
    "kafkawire/primitives/structure.py",
    "kafkawire/primitives/writer.py",
    "kafkawire/protocol/header.py",
    "kafkawire/protocol/json_text.py",
    "kafkawire/protocol/packages.py",
    "kafkawire/records/batch.py",
    "kafkawire/records/batches.py",
    "kafkawire/records/builder.py",
    "kafkawire/records/checksum.py",
    "kafkawire/records/column_decoding.py",
    "kafkawire/records/column_reading.py",
    "kafkawire/records/columns.py",
    *COMPRESSION,
    "kafkawire/records/cursor.py",
    "kafkawire/records/decoding.py",
    "kafkawire/records/encoding.py",
    "kafkawire/records/legacy.py",
    "kafkawire/records/limits.py",
    "kafkawire/records/message_set.py",
    "kafkawire/records/record.py",
)
"""Hand-written modules that are compiled in both modes."""

RARE: Final = (
    *(
        f"kafkawire/capture/{name}.py"
        for name in (
            "tcp/out_of_order",
            "tcp/limits",
            "tcp/connection",
            "tcp/flow",
            "tcp/reassembly",
            "packets/segment_rows",
            "files/packet_offsets",
            "copies",
            "engine",
            "exchanges/client_detection",
            "exchanges/conversation",
            "exchanges/exchanges",
            "exchanges/waiting",
            "exchanges/in_flight",
            "exchanges/inference",
            "exchanges/message_pairs",
            "exchanges/pairing",
            "exchanges/response_layouts",
            "frames/bodies",
            "frames/other_protocols",
            "exchanges/endings",
            "exchanges/fetch_sessions",
            "jsonl/formats",
            "jsonl/records",
            "jsonl/records_fields",
            "tcp/retransmission",
            "tcp/gap_policy",
            "frames/detection",
            "frames/framing",
            "frames/apis",
            "frames/effort",
            "frames/serialised",
            "tables/columns",
            "tables/passes",
            "tables/arrow/exchange_heads",
            "tables/arrow/pairs",
            "tables/arrow/partition_columns",
            "tables/arrow/record_fields",
            "tables/tasks/making",
            "tables/tasks/pairing",
            "tables/tasks/sessions",
            "tables/tasks/splitting",
            "tcp/connection_table",
            "tracking",
            "tables/context",
            "tables/exchanges",
            "tables/extraction/body_facts",
            "tables/extraction/entities",
            "tables/messages",
            "tables/extraction/partition_fields",
            "tables/extraction/record_batches",
            "tables/records",
        )
    ),
    *(f"kafkawire/client/producer/{name}.py" for name in PRODUCER),
    "kafkawire/primitives/limits.py",
    "kafkawire/protocol/json_text.py",
    "kafkawire/protocol/packages.py",
    *COMPRESSION,
    "kafkawire/records/legacy.py",
    "kafkawire/records/limits.py",
    "kafkawire/records/message_set.py",
)
"""Those that do not run for each message of an ordinary capture: compiled for size."""

DOCUMENTED: Final = frozenset(
    f"kafkawire/{name}.py"
    for name in (
        "capture/engine",
        "primitives/limits",
        "primitives/structure",
        "protocol/packages",
        "records/batch",
        "records/batches",
        "records/builder",
        "records/columns",
        "records/compression/codecs",
        "records/limits",
        "records/message_set",
        "records/record",
    )
)
"""Those with public names: `help` of a class or function there has the text of its source."""

C_SOURCES: Final = (
    "kafkawire/capture/frames/in_order.c",
    "kafkawire/capture/jsonl/writer.c",
    "kafkawire/capture/packets/ordinary.c",
    "kafkawire/capture/tables/arrow/values.c",
    "kafkawire/capture/tables/extraction/blocks.c",
    "kafkawire/primitives/shared.c",
    "kafkawire/records/castagnoli.c",
    "kafkawire/records/rows.c",
    "kafkawire/spark/shuffle/plain_packets.c",
)
"""Modules in C; each has a Python version for interpreted builds."""

C_FUNCTIONS: Final = (
    CFunction(
        "kafkawire.primitives.shared.shared_text",
        "Kafkawire_shared_text",
        ("bytes", "i64", "i64"),
        "str",
        "kafkawire/primitives/shared.h",
    ),
    CFunction(
        "kafkawire.primitives.shared.shared_int32_items",
        "Kafkawire_shared_int32_items",
        ("bytes", "i64", "i64"),
        "list",
        "kafkawire/primitives/shared.h",
    ),
    CFunction(
        "kafkawire.primitives.appending.append_text",
        "Kafkawire_append_text",
        ("BytesWriter", "str", "bool"),
        "bool",
        "kafkawire/primitives/appending.h",
    ),
    CFunction(
        "kafkawire.primitives.appending.append_int32s",
        "Kafkawire_append_int32s",
        ("BytesWriter", "list", "bool"),
        "bool",
        "kafkawire/primitives/appending.h",
    ),
)
"""Those of their functions that compiled modules call directly, without objects for arguments."""

CONTEXT: Final = (
    "kafkawire/capture/files/blocks.py",
    "kafkawire/capture/files/packet_headers.py",
    "kafkawire/capture/tcp/events.py",
    "kafkawire/capture/packets/kinds.py",
    "kafkawire/capture/packets/parser.py",
    "kafkawire/capture/packets/segments.py",
    "kafkawire/capture/rows.py",
    "kafkawire/capture/exchanges/topic_ids.py",
    "kafkawire/client/arguments.py",
    "kafkawire/client/cluster.py",
    "kafkawire/client/producer/configuration.py",
    "kafkawire/client/producer/events.py",
    "kafkawire/client/producer/murmur2.py",
    "kafkawire/client/producer/record_failures.py",
    "kafkawire/client/requests.py",
    "kafkawire/errors.py",
    "kafkawire/magic_numbers.py",
    "kafkawire/messages/api_key.py",
    "kafkawire/primitives/appending.py",
    "kafkawire/primitives/failure.py",
    "kafkawire/primitives/index.py",
    "kafkawire/primitives/shared.py",
    "kafkawire/protocol/error_code.py",
    "kafkawire/protocol/fields.py",
    "kafkawire/protocol/json_form.py",
    "kafkawire/capture/frames/in_order.py",
    "kafkawire/capture/frames/tracked_state.py",
    "kafkawire/capture/jsonl/wire_layouts.py",
    "kafkawire/capture/jsonl/writer.py",
    "kafkawire/capture/tables/extraction/decoded_partitions.py",
    "kafkawire/capture/tables/extraction/blocks.py",
    "kafkawire/capture/tables/extraction/partition_paths.py",
    "kafkawire/capture/tables/extraction/programs.py",
    "kafkawire/capture/tables/extraction/steps.py",
    "kafkawire/records/castagnoli.py",
    "kafkawire/records/compression/packages.py",
    "kafkawire/records/replaced_text.py",
    "kafkawire/records/rows.py",
)
"""Interpreted modules with types that the compiled ones need."""

HOT_APIS: Final = (
    "AddPartitionsToTxn",
    "ApiVersions",
    "ConsumerGroupHeartbeat",
    "EndTxn",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "Produce",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupHeartbeat",
    "SyncGroup",
    "TxnOffsetCommit",
)
"""APIs of everyday traffic: compiling them takes a sixth of the time of all."""

RARE_APIS: Final = (
    "AddPartitionsToTxn",
    "ConsumerGroupHeartbeat",
    "EndTxn",
    "InitProducerId",
    "LeaveGroup",
    "OffsetFetch",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupHeartbeat",
    "TxnOffsetCommit",
)
"""Those compiled for size: 0.1 MB less, and rarely many of them in a capture."""


def both(apis: Iterable[str]) -> list[str]:
    """Name the messages of APIs."""
    return [f"{api}{kind}" for api in apis for kind in ("Request", "Response")]


HOT: Final = frozenset(["RequestHeader", "ResponseHeader", *both(HOT_APIS)])

PACKAGE: Final = "kafkawire"


def asked_mode() -> str:
    """Read KAFKAWIRE_COMPILE."""
    mode = os.environ.get("KAFKAWIRE_COMPILE", "hot")
    if mode not in MODES:
        raise ValueError(f"KAFKAWIRE_COMPILE={mode}: must be one of {', '.join(MODES)}")
    return mode


def schema_files(root: Path) -> dict[str, str]:
    """Map each schema to its path in the wheel."""
    paths = sorted((root / "schemas").glob("*.json"))
    return {str(path): f"kafkawire_codegen/schemas/{path.name}" for path in paths}


class KafkawireBuildHook(BuildHookInterface[BuilderConfig]):
    """Runs once per wheel, editable or not."""

    def dependencies(self) -> list[str]:
        """Require the compiler only for a build that uses it: it is half of the environment."""
        return [] if asked_mode() == "off" else list(COMPILERS)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        mode = asked_mode()
        messages = generate(root / "schemas", root / PACKAGE / "messages", f"{PACKAGE}.messages")
        if version == "editable":
            # schemas and native modules beside the sources; stale ones would shadow them
            for stale in native_files(root, PACKAGE, PACKAGE):
                stale.unlink()
        else:
            build_data["force_include"].update(schema_files(root))
        if mode == "off":
            return
        native = self.compile(root, mode, messages.modules)
        if native is None:
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version == "editable":
            shutil.copytree(native, root, dirs_exist_ok=True)
        else:
            build_data["force_include"].update({str(p): p.name for p in native.iterdir()})

    def compile(self, root: Path, mode: str, messages: dict[str, str]) -> Path | None:
        """Compile the modules of a mode into a folder of their own; None if that fails."""
        native = root / "build" / "native"
        shutil.rmtree(native, ignore_errors=True)
        files = {name: f"{PACKAGE}/messages/{module}.py" for name, module in messages.items()}
        hot = [file for name, file in files.items() if name in HOT]
        rare = [files[name] for name in both(RARE_APIS)]
        cold = [file for name, file in files.items() if name not in HOT and mode == "all"]
        modules = [*RUNTIME, *hot, *cold]
        try:
            compile_modules(
                root,
                modules,
                library=PACKAGE,
                out=native,
                context=CONTEXT,
                rare=[*RARE, *rare],
                small=cold,
                undocumented=set(RUNTIME) - DOCUMENTED,
                sources=C_SOURCES,
                functions=C_FUNCTIONS,
            )
        except NotCompiled as reason:
            if os.environ.get("KAFKAWIRE_COMPILE_STRICT") == "1":
                raise
            self.app.display_warning(f"not compiled, so the codecs are interpreted: {reason}")
            return None
        return native
