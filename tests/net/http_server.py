"""An HTTP server on loopback, whose responses a test determines."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

CERTIFICATE: Final = str(Path(__file__).parent / "server" / "localhost.pem")
"""The certificate of a server with TLS, its key, and the authority that has signed it: itself."""


class Request(NamedTuple):
    """A request. path: with its query. fields: of the header, with names in lower case."""

    method: str
    path: str
    fields: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """A response."""

    status: int
    body: bytes
    fields: Mapping[str, str] = MappingProxyType({})


def server_context() -> ssl.SSLContext:
    """Return the context of a server with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@contextmanager
def http_server(
    respond: Callable[[Request], Response], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve until the end of the block; the URL of the server has no / at its end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            fields = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, fields, self.rfile.read(size))
            response = respond(request)
            self.send_response(response.status)
            for name, value in response.fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
