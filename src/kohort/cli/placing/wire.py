"""A plain connection to a Kafka broker: one request, one answer, and a deadline for it all."""

from __future__ import annotations

import re
import socket
import time
from typing import Final, Self, TypeVar

from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages import api
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader

__all__ = ["Address", "BrokerError", "Connection", "kafka_error", "parse_address"]

R = TypeVar("R", bound=Response)

Address = tuple[str, int]
"""Host and port."""

_CLIENT: Final = "kohort-place"
_LARGEST: Final = 100 << 20
"""Bytes of the largest answer that is believed; what isn't Kafka begins with what looks like a larger one."""

_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class BrokerError(Exception):
    """What went wrong with a broker: its text names the broker and what to do."""


def parse_address(text: str) -> Address:
    """Host and port out of `host:port` or `[::1]:port`.

    Raises:
        ValueError: it is neither.
    """
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]]+)):([0-9]{1,5})", text)
    if match is None or not 0 < int(match[3]) < 65_536:
        raise ValueError("HOST:PORT is needed, such as localhost:9092")
    return match[1] or match[2], int(match[3])


def kafka_error(code: int, detail: str | None = None) -> KafkaError:
    """The error of a code in an answer, be it one that Kohort doesn't know."""
    try:
        return KafkaError(ErrorCode(code), detail)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"code {code}" + (f": {detail}" if detail else ""))


class Connection:
    """A connection, which has asked the broker for the versions it speaks. It is a context manager.

    Args:
        address: where to connect to.
        deadline: monotonic time in seconds until which everything has to be done.

    Raises:
        BrokerError: it can't be reached, or doesn't answer as a Kafka broker does; so do all calls.
    """

    def __init__(self, address: Address, deadline: float) -> None:
        host, port = address
        self.name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._deadline = deadline
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection(address, timeout=self._left())
        except TimeoutError:
            raise self._silent("connecting") from None
        except socket.gaierror as error:
            raise BrokerError(f"{self.name}: there is no such host ({error.strerror})") from None
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BrokerError(f"{self.name} can't be reached ({reason}): does a broker listen there?") from None
        try:
            self._versions = self._ask_versions()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def speaks(self, request: type[Request]) -> bool:
        """Whether the broker and Kohort have a version of the request in common."""
        return self._version(request) is not None

    def ask(self, request: Request, response: type[R]) -> R:
        """The broker's answer, in the newest version that both speak."""
        version = self._version(type(request))
        if version is None:
            raise BrokerError(f"{self.name} doesn't speak {request.__message__.api} in a version that Kohort does")
        return self._exchange(request, response, version)

    def _version(self, request: type[Request]) -> int | None:
        ours = request.__message__.versions
        least, most = self._versions.get(request.__message__.key, (0, -1))
        version = min(most, ours[-1])
        return version if version >= max(least, ours[0]) else None

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="kohort", client_software_version="0")
        answer = self._exchange(request, ApiVersionsResponse, 3)
        if answer.error_code:
            raise BrokerError(f"{self.name} refuses ApiVersions v3: {kafka_error(answer.error_code)}")
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _exchange(self, request: Request, response: type[R], version: int) -> R:
        which = api(request.__message__.key)
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=which.key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=_CLIENT,
        )
        try:
            body = header.encode(which.request_header_version(version)) + request.encode(version)
        except ProtocolError as error:
            raise BrokerError(f"{self.name} can't be asked for {which.name} v{version}: {error}") from None
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(len(body).to_bytes(4, "big") + body)
            size = int.from_bytes(self._receive(4, which.name), "big")
            if size > _LARGEST:
                raise BrokerError(
                    f"{self.name} answers {which.name}, but not in Kafka's protocol: is it a Kafka broker, and is this "
                    "a listener without TLS?"
                )
            data = self._receive(size, which.name)
        except TimeoutError:
            raise self._silent(f"waiting for its answer to {which.name}") from None
        except OSError as error:
            raise BrokerError(f"{self.name} broke off during {which.name}: {error.strerror or error}") from None
        try:
            answered, end = ResponseHeader.read(data, 0, which.response_header_version(version))
            if answered.correlation_id != self._correlation_id:
                raise BrokerError(f"{self.name} answers {which.name} with the answer to another request")
            if response is ApiVersionsResponse and data[end : end + 2] == _UNSUPPORTED:
                version = 0  # in which a broker answers that doesn't know the version
            return response.decode(data[end:], version)
        except ProtocolError as error:
            raise BrokerError(f"{self.name} answers {which.name} with bytes that aren't right: {error}") from None

    def _receive(self, size: int, what: str) -> bytes:
        """So many bytes."""
        received = bytearray()
        while len(received) < size:
            self._socket.settimeout(self._left())
            more = self._socket.recv(min(size - len(received), 1 << 20))
            if not more:
                missing = f" {size - len(received)} bytes before the end of its answer" if received else ""
                raise BrokerError(
                    f"{self.name} closes the connection{missing} during {what}; a listener with TLS or SASL does that, "
                    "which isn't supported"
                )
            received += more
        return bytes(received)

    def _left(self) -> float:
        """Seconds until the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _silent(self, doing: str) -> BrokerError:
        return BrokerError(f"{self.name}: out of time {doing}; --timeout gives it more")
