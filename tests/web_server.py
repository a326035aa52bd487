"""A server of HTTP for tests, which answers what it is told to, as badly as it is told to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client says what went wrong


class WebServer:
    """A server on a free port of this machine.

    Attributes:
        body, status: of the next answers.
        cut: the answer's bytes come, but then nothing more, as if it went on.
        asked: what was asked: the path, the headers in lower case, and the body.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.body = b""
        self.status = 200
        self.cut = False
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self._end = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append((self.path, headers, self.rfile.read(size)))
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body) + outer.cut))
                self.end_headers()
                self.wfile.write(outer.body)
                if outer.cut:
                    outer._end.wait()

            do_POST = do_GET  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self._server.server_address[1]}/keys"

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def web_server(tls: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    """A server, ended with the block."""
    server = WebServer(tls)
    try:
        yield server
    finally:
        server.close()
