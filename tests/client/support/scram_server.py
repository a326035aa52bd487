"""The broker's part of SASL, for scripted brokers."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping

from kohort.protocol.message import Request, Response
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.client.support.scripted_broker import Asked

__all__ = ["SaslServer"]


class SaslServer:
    """Takes one user; of OAUTHBEARER one token, the password, with extensions, the name.

    Attributes:
        lifetimes: of the next sessions, in ms; 0 once they are used up.
        accepted: how often somebody was let in.
        signs: makes the signature of the last message; tests have it sign wrongly.
    """

    def __init__(self, username: str, password: str, mechanism: str = "SCRAM-SHA-256", iterations: int = 4096) -> None:
        self.username, self.password, self.mechanism, self.iterations = username, password, mechanism, iterations
        self.lifetimes: list[int] = []
        self.accepted = 0
        self.signs: Callable[[bytes], bytes] = lambda signature: signature
        self._first: dict[int, tuple[str, str]] = {}

    @property
    def script(self) -> Mapping[type[Request], Callable[[Asked], Response]]:
        """For a scripted broker."""
        return {SaslHandshakeRequest: self.shake, SaslAuthenticateRequest: self.authenticate}

    def shake(self, asked: Asked) -> Response:
        assert isinstance(asked.request, SaslHandshakeRequest)
        error = 0 if asked.request.mechanism == self.mechanism else 33
        return SaslHandshakeResponse(error_code=error, mechanisms=(self.mechanism,))

    def authenticate(self, asked: Asked) -> Response:
        assert isinstance(asked.request, SaslAuthenticateRequest)
        token = asked.request.auth_bytes
        if self.mechanism == "PLAIN":
            good = token == f"\0{self.username}\0{self.password}".encode()
            return self._accept(b"") if good else self._refuse()
        if self.mechanism == "OAUTHBEARER":
            return self._bearer(token)
        if token.startswith(b"n,,"):
            first = token[3:].decode()
            salt = base64.b64encode(b"salt of the test").decode()
            said = f"r={first.partition('r=')[2]}theirs,s={salt},i={self.iterations}"
            self._first[asked.connection] = first, said
            return SaslAuthenticateResponse(auth_bytes=said.encode())
        return self._finish(token.decode(), *self._first.pop(asked.connection))

    def _bearer(self, token: bytes) -> Response:
        if token == b"\x01":
            return self._refuse()
        good = token == f"n,,\x01auth=Bearer {self.password}\x01{self.username}\x01".encode()
        return self._accept(b"") if good else SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')

    def _finish(self, token: str, first: str, said: str) -> Response:
        name = "sha" + self.mechanism[-3:]
        without, _, proof = token.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac(name, self.password.encode(), b"salt of the test", self.iterations)
        signed = f"{first},{said},{without}".encode()
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        user = self.username.replace("=", "=3D").replace(",", "=2C")
        if base64.b64decode(proof) != expected or not first.startswith(f"n={user},"):
            return self._refuse()
        server_key = hmac.digest(salted, b"Server Key", name)
        verifier = self.signs(hmac.digest(server_key, signed, name))
        return self._accept(b"v=" + base64.b64encode(verifier))

    def _accept(self, token: bytes) -> Response:
        self.accepted += 1
        lifetime = self.lifetimes.pop(0) if self.lifetimes else 0
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime)

    def _refuse(self) -> Response:
        return SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
