"""The smallest schema registry: Confluent's API, over HTTP on loopback, in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid5

GUIDS = UUID(int=1)


class SchemaRegistry:
    """Schemas by id, and versions of subjects. authorization: of each request, in order."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.authorization: list[str | None] = []
        self.url = ""

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """Add a schema; return its id."""
        kept = {
            key: schema[key] for key in ("schema", "schemaType", "references") if schema.get(key)
        }
        if kept not in self.schemas:
            self.schemas.append(kept)
        number = self.schemas.index(kept) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def guid(self, number: int) -> UUID:
        return uuid5(GUIDS, str(number))

    def respond(self, path: str) -> Any:
        """Return the response to a GET request; None: not found."""
        match [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
            case ["schemas", "ids", number] if int(number) <= len(self.schemas):
                return self.described(int(number))
            case ["schemas", "guids", guid]:
                numbers = range(1, len(self.schemas) + 1)
                found = [one for one in numbers if str(self.guid(one)) == guid]
                return self.described(found[0]) if found else None
            case ["apis", "registry", "v3", "ids", _, number, *rest]:  # as Apicurio's API
                return [] if rest else json.loads(self.schemas[int(number) - 1]["schema"])
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                versions = self.subjects[subject]
                at = len(versions) if version == "latest" else int(version)
                if at <= len(versions):
                    return self.described(versions[at - 1]) | {"subject": subject, "version": at}
        return None

    def described(self, number: int) -> dict[str, Any]:
        guid = str(self.guid(number))
        return self.schemas[number - 1] | {"id": number, "guid": guid}

    def posted(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the response to a POST request: a schema is registered or looked up."""
        match [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
            case ["subjects", subject, "versions"]:
                return self.described(self.register(subject, body))
            case ["subjects", subject]:
                number = self.register(subject, body)
                version = self.subjects[subject].index(number) + 1
                return self.described(number) | {"subject": subject, "version": version}
        return None


@contextmanager
def running() -> Iterator[SchemaRegistry]:
    """Run a registry on a free port of loopback."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(registry.respond(self.path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(registry.posted(self.path, body))

        def _send(self, body: Any) -> None:
            registry.requests.append(self.path)
            registry.authorization.append(self.headers["Authorization"])
            missing = {"error_code": 40403, "message": "not found"}
            data = json.dumps(missing if body is None else body).encode()
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
