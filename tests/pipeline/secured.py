"""A broker that asks for TLS, a password and rights, and a user who has those that docs/clusters.md names."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kohort.client.admin import Admin
from kohort.testing.broker import Broker
from tests.certificates import Certificates

USER = "pipeline"
PASSWORD = "sesame-of-the-pipeline"
APPLICATION, SOURCE, SINK = "flight-delays", "flights", "delays-by-hour"
"""As the page has them."""

_PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"


class Secured:
    """How the user and the administrators reach the broker.

    Attributes:
        properties: of the user's clients, by Kafka's keys.
        administrators: an address without TLS and passwords.
        rules: the commands of the page, as words.
    """

    def __init__(self, broker: Broker, files: Certificates) -> None:
        self.properties = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(files.ca),
            "ssl.truststore.type": "PEM",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{USER}" password="{PASSWORD}";',
        }
        self.administrators = f"127.0.0.1:{broker.server.listeners[1].port}"
        commands = re.findall(r"^    kohort (acls add User:.*)$", _PAGE.read_text(), re.MULTILINE)
        self.rules = [shlex.split(each) for each in commands]

    def set_up(self) -> None:
        """Makes the user, gives it the rights that the page names, and makes its topics."""
        for rule in self.rules:
            command = [sys.executable, "-m", "kohort.cli", *rule, "-b", self.administrators]
            subprocess.run(command, check=True, capture_output=True, timeout=60)

        async def make() -> None:
            async with Admin(self.administrators) as admin:
                await admin.users.set(USER, PASSWORD)
                for topic in (SOURCE, SINK):
                    await admin.topics.create(topic, partitions=2)

        asyncio.run(make())


@contextmanager
def secured_broker(directory: Path) -> Iterator[Secured]:
    files = Certificates(directory)
    keystore = directory / "keystore.pem"
    keystore.write_text(files.key.read_text() + files.cert.read_text())
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keystore,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings) as broker:
        secured = Secured(broker, files)
        secured.set_up()
        yield secured
