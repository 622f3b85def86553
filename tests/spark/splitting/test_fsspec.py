"""URIs that pyarrow does not open itself: a web server on loopback, and other stores of fsspec."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from kafkawire.capture.files.source import read_capture
from kafkawire.spark.splitting import inputs
from kafkawire.spark.splitting.stores import located

from ...conftest import FIXTURES
from .law import serially, split_up

FOLDER = FIXTURES / "captures"
NAME = "kcat-kf.pcap"


class Files(BaseHTTPRequestHandler):
    """Serves captures, whole or a range; and lists them as web servers do. whole: only whole."""

    def __init__(self, *given: object, whole: bool) -> None:
        self._whole = whole
        super().__init__(*given)  # type: ignore[arg-type]  # what the server gives

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self.wfile.write(self._answer())

    def _answer(self) -> bytes:
        path = FOLDER / self.path.lstrip("/")
        if not path.exists():
            self.send_error(404)
            return b""
        listed = "".join(
            f'<a href="{each.name}">{each.name}</a>' for each in FOLDER.glob("k*.pcap")
        )
        data = path.read_bytes() if path.is_file() else listed.encode()
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if byte_range and not self._whole:
            start, end = int(byte_range[1]), min(int(byte_range[2]), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
            data = data[start : end + 1]
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "none" if self._whole else "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return data

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Waits for its threads."""

    daemon_threads = False


@contextmanager
def web(*, whole: bool = False) -> Iterator[str]:
    """Say where the captures are served."""
    server = Server(("127.0.0.1", 0), partial(Files, whole=whole))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


READ = """
import json, sys
from kafkawire.spark.splitting import inputs, plan, probe, prove
try:
    for file in inputs(sys.argv[1:]):
        proven = prove(plan(file, 5000), lambda splits: [probe(split) for split in splits])
        print(json.dumps([file.name, file.size, sum(one.packets for one in proven.proven)]))
except (OSError, ValueError) as error:
    print(type(error).__name__, error)
"""


def decode(*given: str) -> str:
    """Read captures in a process of its own: fsspec keeps threads and connections for the web."""
    command = [sys.executable, "-c", READ, *given]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    return ran.stdout


@pytest.mark.timeout(300)
def test_a_web_server() -> None:
    with web() as where:
        want = [
            [f"{where}/{path.name}", path.stat().st_size, sum(map(len, read_capture(path)))]
            for path in sorted(FOLDER.glob("k*--*.pcap"))
        ]
        assert len(want) > 0
        found = [json.loads(line) for line in decode(f"{where}/k*--*.pcap").splitlines()]
        assert found == want
        (one,) = [json.loads(line) for line in decode(f"{where}/{NAME}").splitlines()]
        assert one[2] == sum(map(len, read_capture(FOLDER / NAME)))
        output = decode(f"{where}/none.pcap")
        assert output == f"FileNotFoundError {where}/none.pcap: no such file\n"


@pytest.mark.timeout(200)
def test_a_web_server_without_ranges() -> None:
    with web(whole=True) as where:
        output = decode(f"{where}/{NAME}")
    assert output.startswith(f"OSError {where}/{NAME}: read failed: ")
    assert "HTTP" in output


def test_a_password_in_a_uri_is_refused() -> None:
    store, path = located("https://host:8443/a/b.pcap?x=1", {})
    assert path == store.uri(path) == "https://host:8443/a/b.pcap?x=1"
    with pytest.raises(ValueError, match=r"https://: a password in the URI") as caught:
        located("https://me:secret@host:8443/a/b.pcap", {})
    assert "secret" not in str(caught.value)


def test_other_stores(tmp_path: Path) -> None:
    """A pattern means the same whether a store's paths begin with a slash or not."""
    (local,) = inputs([f"local://{FOLDER}/{NAME}"])
    found, _ = split_up(local, 5000)
    assert found == serially(FOLDER / NAME)
    memory = fsspec.filesystem("memory")
    root = f"{tmp_path.name}-of-memory"
    memory.pipe(f"/{root}/a.pcap", (FOLDER / NAME).read_bytes())
    try:
        for given in (f"memory://{root}/a.pcap", f"memory://{root}/", f"memory://{root}/*.pcap"):
            (file,) = inputs([given])
            assert split_up(file, 5000)[0] == found
        memory.pipe(f"/{root}/day=1/b.pcap", (FOLDER / NAME).read_bytes())
        unread: list[str] = []
        assert len(inputs([f"memory://{root}/"], ignored=lambda _, what: unread.append(what))) == 1
        assert unread == ["1 directory in it not read: day=1"]
    finally:
        memory.rm(f"/{root}", recursive=True)


def test_a_store_without_its_library() -> None:
    with pytest.raises(ValueError, match=r"sftp://: .*paramiko"):
        inputs(["sftp://host/a.pcap"])
