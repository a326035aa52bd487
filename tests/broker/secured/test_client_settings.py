"""Settings of clients as their files have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.broker.secured.client_settings import ClientSettings, shown
from kohort.client import ClientConfig

AWKWARD = r'a "quoted" \ back, größe 🙂; = #'


@pytest.mark.parametrize(
    ("user", "password", "ca"), [("admin", "secret", "/d/ca.pem"), (AWKWARD, AWKWARD, r"/d/ö\x y/ca.pem")]
)
def test_our_client_reads_java_s_file(tmp_path: Path, user: str, password: str, ca: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(ClientSettings("kafka.example:9092", Path(ca), user, password).java_file())
    config, others = ClientConfig.from_file(file)
    assert (config.sasl_username, config.sasl_password, config.ssl_cafile) == (user, password, ca)
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert config.addresses == (("kafka.example", 9092),)
    assert others == {}


def test_our_client_reads_librdkafka_s_file(tmp_path: Path) -> None:
    file = tmp_path / "librdkafka.conf"
    file.write_text(ClientSettings("[::1]:9092", Path("/d/ca.pem"), "admin", "secret").librdkafka_file())
    config, _ = ClientConfig.from_file(file)
    assert (config.sasl_username, config.sasl_password, config.ssl_cafile) == ("admin", "secret", "/d/ca.pem")


def test_what_is_shown_for_python_is_python() -> None:
    directory = Path("/a place/it's")
    files = {name: directory / name for name in ("java", "librdkafka", "password")}
    text = shown(ClientSettings("h:1", directory / "ca.pem", "admin", "***"), directory, **files)
    (block,) = (part for part in text.split("\n\n") if "confluent_kafka" in part)
    made: list[dict[str, str]] = []
    program = block.replace("from confluent_kafka import Producer", "")
    program = program.replace(f'open("{files["password"]}")', "opened")
    exec(program, {"Producer": made.append, "opened": _Lines()})
    assert made[0]["sasl.password"] == "secret"
    assert made[0]["ssl.ca.location"] == str(directory / "ca.pem")
    assert "kcat -F '/a place/it'\"'\"'s/librdkafka' -L" in text


class _Lines:
    def readline(self) -> str:
        return "secret\n"
