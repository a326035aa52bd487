"""The clients that the tests are run with, behind one thin face each."""

from __future__ import annotations

from .aiokafka_client import Aiokafka
from .face import Client, Message, Transactional
from .kafka_python_client import KafkaPython
from .kcat_client import Kcat
from .librdkafka_client import Librdkafka

LIBRARIES: list[Client] = [Librdkafka(), KafkaPython(), Aiokafka()]
CLIENTS: list[Client] = [*LIBRARIES, Kcat()]

__all__ = ["CLIENTS", "LIBRARIES", "Client", "Message", "Transactional"]
