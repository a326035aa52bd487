"""Settings of clients that a secured broker lets in: for Java, librdkafka and Python, as files and to be pasted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

MECHANISM: Final = "SCRAM-SHA-512"
SCRAM_SINCE: Final = "2.6.1"
"""Older ones repeat their nonce, which Kafka refuses, too."""

_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class ClientSettings(NamedTuple):
    """What a client needs.

    Attributes:
        servers: bootstrap servers.
        ca: the file of certificates to trust, in PEM.
        user, password: by which it logs in.
    """

    servers: str
    ca: Path
    user: str
    password: str

    def librdkafka(self) -> dict[str, str]:
        """By librdkafka's keys, as in kcat and confluent-kafka."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    def java(self) -> dict[str, str]:
        """By the keys of Java's clients and Kafka's tools."""
        login = f"{_MODULE} required username={_quoted(self.user)} password={_quoted(self.password)};"
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
        }

    def librdkafka_file(self) -> str:
        """A file for `kcat -F`."""
        return _lines(self.librdkafka())

    def java_file(self) -> str:
        """A file for `--command-config` of Kafka's tools, and `--config` of ours."""
        return _lines({key: _escaped(value) for key, value in self.java().items()})


def shown(settings: ClientSettings, directory: Path, *, java: Path, librdkafka: Path, password: Path) -> str:
    """The settings as they are pasted into shells, files and programs.

    Args:
        settings: with the password, or where nobody may see it, with what stands for it.
        directory: which has all of this.
        java, librdkafka, password: the files.
    """
    python = settings.librdkafka() | {"sasl.password": "\0"}
    text = json.dumps(python, indent=4, ensure_ascii=False)
    opened = f"open({json.dumps(str(password), ensure_ascii=False)}).readline().strip()"
    text = text.replace(json.dumps("\0"), opened).replace("strip()\n}", "strip(),\n}")
    return f"""
Clients log in as {settings.user}. All of this, with the password, is in {directory}.

# Java and Kafka's tools: {java}
{settings.java_file()}
kafka-topics.sh --bootstrap-server {settings.servers} --command-config {_shell(java)} --list

# librdkafka from {SCRAM_SINCE} on, in any language: {librdkafka}
{settings.librdkafka_file()}
kcat -F {_shell(librdkafka)} -L

# Python, confluent-kafka
from confluent_kafka import Producer
producer = Producer({text})

# Python, kohort
from kohort.client import ClientConfig, Producer
producer = Producer(ClientConfig.from_file({json.dumps(str(java), ensure_ascii=False)})[0])

# The commands of kohort
kohort topics list --config {_shell(java)}

Clients on other machines need {settings.ca.name}, too, and their own path of it in their settings.

"""


def _lines(settings: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _quoted(text: str) -> str:
    """As JAAS has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    """A value as a .properties file of Java has it."""
    units = text.replace("\\", "\\\\").encode("utf-16-be", errors="surrogatepass")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def _shell(path: Path) -> str:
    """A path as a shell takes it."""
    text = str(path)
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text, re.ASCII) else "'" + text.replace("'", "'\"'\"'") + "'"
