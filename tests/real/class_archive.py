"""Starts Kafka's JVMs in half the CPU time: class data sharing (JEP 310).

The archive is made once for each Java and folder of jars, beside that folder; a JVM for which
it does not fit ignores it. It has the classes that a broker and the tools have loaded.

    StorageTool, kafka.Kafka, ... ─▶ lists of loaded classes ─▶ java -Xshare:dump ─▶ cache/*.jsa

Making it takes as long as it saves in a dozen starts: `make test` has four dozen.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from .broker import Broker, running
from .java import OPTIONS, TOOL_SECONDS, Installation
from .wire import Wire

TOPIC: Final = "topic"
QUIET: Final = "-Xlog:disable"
"""Without what the JVM prints about an archive that does not fit."""


def with_archive(installation: Installation) -> Installation:
    """Return an installation whose JVMs use the archive; make it if there is none."""
    archive = path_of(installation)
    with installation.jars.with_name("classes-lock").open("w") as lock:  # one worker makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
                _make(installation, Path(scratch)).rename(archive)
    return replace(installation, options=(*OPTIONS, QUIET, f"-XX:SharedArchiveFile={archive}"))


def path_of(installation: Installation) -> Path:
    """Return where the archive of an installation is, or would be."""
    java = subprocess.run([installation.java, "-version"], capture_output=True, check=True).stderr
    digest = hashlib.sha256(java).hexdigest()
    return installation.jars.with_name(f"{installation.jars.name}-classes-{digest[:16]}.jsa")


def _make(installation: Installation, folder: Path) -> Path:
    """Make an archive in a folder of the classes that programs load; return its path."""
    listing = replace(
        installation, options=(*OPTIONS, f"-XX:DumpLoadedClassList={folder}/%p.classes")
    )
    with running(listing, folder) as broker:
        _use_clients(broker)
    _use_tools(broker)
    lists = [path.read_text().splitlines() for path in sorted(folder.glob("*.classes"))]
    merged = folder / "all"
    names = dict.fromkeys(chain.from_iterable(lists))
    merged.write_text("".join(f"{name}\n" for name in names))
    archive = folder / "classes.jsa"
    subprocess.run(
        [
            *(installation.java, *OPTIONS, QUIET, "-Xshare:dump", "-cp", installation.class_path),
            *(f"-XX:SharedClassListFile={merged}", f"-XX:SharedArchiveFile={archive}"),
        ],
        stdout=subprocess.DEVNULL,
        timeout=TOOL_SECONDS,
        check=True,
    )
    return archive


def _use_clients(broker: Broker) -> None:
    """Write a record to a topic and read it, with the console's tools."""
    with Wire(broker.port) as wire:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        wire.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    at = ("--bootstrap-server", broker.bootstrap, "--topic", TOPIC)
    broker.installation.run("org.apache.kafka.tools.ConsoleProducer", *at, stdin="record\n")
    broker.installation.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*at, "--group", "group", "--from-beginning", "--max-messages", "1"),
    )


def _use_tools(broker: Broker) -> None:
    log = broker.data / "__cluster_metadata-0" / "00000000000000000000.log"
    broker.installation.run(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--deep-iteration", "--cluster-metadata-decoder", f"--files={log}"),
    )
