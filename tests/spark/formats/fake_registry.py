"""A schema registry for tests: Confluent's API over what is put into it, without rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from kohort.schema_registry.registry import SchemaRegistry


class FakeRegistry:
    """A registry on a free port.

    Attributes:
        asked: method and path of each request.
        failures: statuses that the next requests are answered with instead.
        bodies: what was posted.
    """

    def __init__(self) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.failures: list[int] = []
        self.bodies: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(f"{self.command} {self.path}")
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status, answer = outer.answer(self.path, json.loads(body) if body else None)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def registry(self, **more: Any) -> SchemaRegistry:
        return SchemaRegistry(self.url, **more)

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: Any = ()) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        known = [each for versions in self.subjects.values() for each in versions]
        found = next((each["id"] for each in known if each["schema"] == text), 0)
        entry = {"id": found or 1 + len({each["id"] for each in known}), "schema": text, "references": list(references)}
        self.subjects.setdefault(subject, []).append(entry if kind == "AVRO" else entry | {"schemaType": kind})
        return int(entry["id"])

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        if self.failures:
            return self.failures.pop(0), {"error_code": 50001, "message": "not today"}
        match [unquote(each) for each in path.split("/")[1:]]:
            case ["schemas", "ids", number]:
                for each in (each for versions in self.subjects.values() for each in versions):
                    if each["id"] == int(number):
                        return 200, {name: value for name, value in each.items() if name != "id"}
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                return 200, self.subjects[subject][-1 if version == "latest" else int(version) - 1]
            case ["subjects", subject, "versions"] if body is not None:
                self.bodies.append(body)
                return 200, {"id": self.add(subject, body["schema"], body.get("schemaType", "AVRO"))}
            case ["subjects", subject]:
                for each in self.subjects.get(subject, []):
                    if each["schema"] == body["schema"]:
                        return 200, each
                return 404, {"error_code": 40403, "message": "Schema not found"}
        return 404, {"error_code": 40401, "message": "Subject not found"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def fake_registry() -> Iterator[FakeRegistry]:
    """A registry, ended with the block."""
    registry = FakeRegistry()
    try:
        yield registry
    finally:
        registry.close()
