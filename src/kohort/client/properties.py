"""Reads Kafka's configuration files, in the spelling of Java's clients or librdkafka, into our settings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kohort.client.errors import ConfigError

__all__ = ["parse", "read_file", "read_settings"]


def read_file(path: Path) -> dict[str, str]:
    """Returns the properties in a file.

    Raises:
        ConfigError: it can't be read.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not a text file of KEY=VALUE lines: {error}") from error


def parse(text: str) -> dict[str, str]:
    r"""Returns the properties in a text: `key=value`, `key: value` or `key value` lines; # and ! begin comments.

    A backslash takes away a character's meaning (`\t`, `\n`, `\r` and `\u0041` give it one), at the end of a line it
    goes on with the next line.
    """
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        logical = line.lstrip()
        if not logical or logical[0] in "#!":
            continue
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, "").lstrip()
        match = _LINE.fullmatch(logical)
        assert match is not None  # anything is a key, at least
        found[_plain(match[1])] = _plain(match[2]).rstrip()
    return found


_LINE: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _plain(text: str) -> str:
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CONTROLS.get(m[2], m[2]), text)
    # A character beyond U+FFFF is escaped as two.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def read_settings(properties: Mapping[str, str], source: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the settings of `ClientConfig` in properties, and the properties of consumers and producers.

    Raises:
        ConfigError: an unknown key, or an invalid value; names the source.
    """
    settings: dict[str, Any] = {}
    others: dict[str, str] = {}
    for key, value in properties.items():
        if key in _KEYS:
            name, read = _KEYS[key]
            try:
                settings[name] = read(value)
            except ValueError as error:
                raise ConfigError(f"{source}: {key}={value!r}: {error}") from None
        elif key in _CHECKED:
            try:
                _CHECKED[key](value, settings)
            except ValueError as error:
                raise ConfigError(f"{source}: {key}: {error}") from None
        elif key in _OTHERS or key.startswith(_OTHER_PREFIXES):
            others[key] = value
        elif key not in _IGNORED:
            known = [*_KEYS, *_CHECKED, *_OTHERS]
            near = difflib.get_close_matches(key, known, 1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{source}: unknown key {key!r}{hint}")
    return settings, others


def _text(value: str) -> str:
    return value


def _pem_file(value: str) -> str:
    if value.endswith((".jks", ".p12", ".pfx", ".keystore", ".truststore")):
        raise ValueError(_ONLY_PEM)
    return value


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError("a whole number is wanted") from None


def _jaas(value: str, settings: dict[str, Any]) -> None:
    """Reads name and password from Java's login configuration, or what OAUTHBEARER has there."""
    module = value.split(None, 1)[0] if value.split() else ""
    options = {match[1]: _plain(match[2] or match[3] or "") for match in _OPTION.finditer(value)}
    if module.endswith("OAuthBearerLoginModule"):
        _oauthbearer(options, settings)
        return
    if not module.endswith(("PlainLoginModule", "ScramLoginModule")):
        raise ValueError(
            f"{module or 'nothing'} can't be used: Kohort knows PlainLoginModule, ScramLoginModule and "
            "OAuthBearerLoginModule"
        )
    if "username" not in options or "password" not in options:
        raise ValueError('username="…" and password="…" are wanted in it')
    settings["sasl_username"], settings["sasl_password"] = options["username"], options["password"]


def _oauthbearer(options: dict[str, str], settings: dict[str, Any]) -> None:
    for name, value in options.items():
        if name.startswith("unsecuredLogin"):
            raise ValueError(f"{name}: tokens without a signature aren't made; name one in {_TOKEN_URL}")
        if name in _LOGIN_OPTIONS:
            settings.setdefault(_LOGIN_OPTIONS[name], value)
    extensions = {
        name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)
    }
    if extensions:
        settings["sasl_extensions"] = extensions


_EXTENSION: Final = "extension_"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"

_LOGIN_OPTIONS: Final = {
    "clientId": "sasl_username",
    "clientSecret": "sasl_password",
    "scope": "sasl_scope",
    "ssl.truststore.location": "sasl_token_cafile",
}
"""Our settings by the options of Java's OAuthBearerLoginModule; those of keys of their own come first."""


def _extensions(value: str) -> dict[str, str]:
    """Reads "name=value,…"."""
    return dict(_pair(each) for each in value.split(",") if each.strip())


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.strip().partition("=")
    return name, value


def _by_class(value: str, settings: dict[str, Any]) -> None:
    """What gets tokens in Java; those of a file and of client credentials are told apart by the URL."""
    if value.rpartition(".")[2] not in _CLASSES:
        raise ValueError(f"{value} can't be used: Kohort knows {', '.join(_CLASSES)}; or give a function as sasl_token")


_CLASSES: Final = (
    "OAuthBearerLoginCallbackHandler", "DefaultJwtRetriever", "FileJwtRetriever", "ClientCredentialsJwtRetriever",
)  # fmt: skip


def _method(value: str, settings: dict[str, Any]) -> None:
    if value.lower() not in ("oidc", "default"):
        raise ValueError(f"{value}: oidc is wanted")


def _no_unsecured(value: str, settings: dict[str, Any]) -> None:
    raise ValueError(f"tokens without a signature aren't made; name one in {_TOKEN_URL}")


_ONLY_PEM: Final = (
    "Java's stores can't be read, only PEM: export certificates with keytool -exportcert -rfc, keys with openssl pkcs12"
)

_OPTION: Final = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;"]+))""")


def _endpoint_identification(value: str, settings: dict[str, Any]) -> None:
    settings["ssl_check_hostname"] = value.strip().lower() not in ("", "none")


def _pem(value: str, settings: dict[str, Any]) -> None:
    if value.upper() != "PEM":
        raise ValueError(f"{value}: {_ONLY_PEM}")


def _no_store(value: str, settings: dict[str, Any]) -> None:
    raise ValueError(_ONLY_PEM)


def _no_text(value: str, settings: dict[str, Any]) -> None:
    raise ValueError("write it to a file, and name that in ssl.ca.location, ssl.certificate.location, ssl.key.location")


def _verification(value: str, settings: dict[str, Any]) -> None:
    if value.lower() != "true":
        raise ValueError("certificates are always verified: name the one to trust in ssl.ca.location")


_KEYS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "bootstrap.servers": ("bootstrap_servers", _text),
    "metadata.broker.list": ("bootstrap_servers", _text),
    "client.id": ("client_id", _text),
    "client.rack": ("client_rack", _text),
    "security.protocol": ("security_protocol", _text),
    "ssl.truststore.location": ("ssl_cafile", _pem_file),
    "ssl.ca.location": ("ssl_cafile", _pem_file),
    "ssl.keystore.location": ("ssl_certfile", _pem_file),
    "ssl.certificate.location": ("ssl_certfile", _pem_file),
    "ssl.key.location": ("ssl_keyfile", _pem_file),
    "ssl.key.password": ("ssl_password", _text),
    "sasl.mechanism": ("sasl_mechanism", _text),
    "sasl.mechanisms": ("sasl_mechanism", _text),
    "sasl.username": ("sasl_username", _text),
    "sasl.password": ("sasl_password", _text),
    _TOKEN_URL: ("sasl_token_url", _text),
    "sasl.oauthbearer.client.credentials.client.id": ("sasl_username", _text),
    "sasl.oauthbearer.client.credentials.client.secret": ("sasl_password", _text),
    "sasl.oauthbearer.client.id": ("sasl_username", _text),
    "sasl.oauthbearer.client.secret": ("sasl_password", _text),
    "sasl.oauthbearer.scope": ("sasl_scope", _text),
    "sasl.oauthbearer.extensions": ("sasl_extensions", _extensions),
    "https.ca.location": ("sasl_token_cafile", _pem_file),
    "request.timeout.ms": ("request_timeout_ms", _number),
    "socket.timeout.ms": ("request_timeout_ms", _number),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _number),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _number),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _number),
    "retry.backoff.ms": ("retry_backoff_ms", _number),
    "retry.backoff.max.ms": ("retry_backoff_max_ms", _number),
    "metadata.max.age.ms": ("metadata_max_age_ms", _number),
    "topic.metadata.refresh.interval.ms": ("metadata_max_age_ms", _number),
    "connections.max.idle.ms": ("connections_max_idle_ms", _number),
    "receive.message.max.bytes": ("receive_message_max_bytes", _number),
}  # fmt: skip
"""Our settings by Kafka's keys: Java's, and librdkafka's where they differ."""

_CHECKED: Final[dict[str, Callable[[str, dict[str, Any]], None]]] = {
    "sasl.jaas.config": _jaas,
    "sasl.login.callback.handler.class": _by_class,
    "sasl.oauthbearer.jwt.retriever.class": _by_class,
    "sasl.oauthbearer.method": _method,
    "sasl.oauthbearer.config": _no_unsecured,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "ssl.truststore.type": _pem,
    "ssl.keystore.type": _pem,
    "ssl.truststore.password": _no_store,
    "ssl.keystore.password": _no_store,
    "ssl.truststore.certificates": _no_text,
    "ssl.keystore.certificate.chain": _no_text,
    "ssl.keystore.key": _no_text,
    "ssl.ca.pem": _no_text,
    "ssl.certificate.pem": _no_text,
    "ssl.key.pem": _no_text,
    "enable.ssl.certificate.verification": _verification,
}

_OTHERS: Final = frozenset((
    "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "batch.num.messages",
    "batch.size", "buffer.memory", "check.crcs", "compression.codec", "compression.level", "compression.type",
    "compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "default.api.timeout.ms",
    "delivery.timeout.ms", "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence",
    "enable.partition.eof", "exclude.internal.topics", "fetch.error.backoff.ms", "fetch.max.bytes",
    "fetch.max.wait.ms", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.wait.max.ms", "group.id",
    "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms", "interceptor.classes",
    "isolation.level", "key.deserializer", "key.serializer", "linger.ms", "max.block.ms", "max.in.flight",
    "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "max.poll.records", "max.request.size", "message.max.bytes", "message.send.max.retries", "message.timeout.ms",
    "partition.assignment.strategy", "partitioner", "partitioner.class", "partitioner.ignore.keys",
    "queue.buffering.max.kbytes", "queue.buffering.max.messages", "queue.buffering.max.ms",
    "queued.max.messages.kbytes", "queued.min.messages", "request.required.acks", "retries", "session.timeout.ms",
    "sticky.partitioning.linger.ms", "transaction.timeout.ms", "transactional.id", "value.deserializer",
    "value.serializer",
))  # fmt: skip
"""Keys of consumers or producers alone."""

_OTHER_PREFIXES: Final = ("partitioner.adaptive.", "partitioner.availability.", "share.")

_IGNORED: Final = frozenset((
    "api.version.request", "auto.include.jmx.reporter", "broker.address.family", "broker.version.fallback",
    "client.dns.lookup", "enable.metrics.push", "log.connection.close", "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "receive.buffer.bytes",
    "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms", "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name", "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms", "socket.keepalive.enable",
    "socket.nagle.disable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "ssl.enabled.protocols",
    "ssl.protocol", "ssl.provider", "statistics.interval.ms",
))  # fmt: skip
"""Keys of other clients that have no effect here."""
