"""Makes config.json and properties.json out of what Apache Kafka and Java say.

    python -m tests.broker.config.vectors.make 'jars/*'

The argument is a Java class path with all of Kafka 4.2.0's server. A broker is started, changed, and asked.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.describe import ConfigSource

HERE = Path(__file__).parent
PORT, CONTROLLER_PORT = 19192, 19193
DATA = "/var/lib/kafka"
"""What the vectors say instead of the temporary directory that Kafka had."""

SERVER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": f"1@127.0.0.1:{CONTROLLER_PORT}",
    "listeners": f"PLAINTEXT://127.0.0.1:{PORT},CONTROLLER://127.0.0.1:{CONTROLLER_PORT}",
    "advertised.listeners": f"PLAINTEXT://127.0.0.1:{PORT}",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "log.roll.hours": "24",
    "min.insync.replicas": "1",
}

CHANGES = [
    ("TOPIC", "t", "retention.ms", "1000"),
    ("TOPIC", "t", "cleanup.policy", "compact,delete"),
    ("BROKER", "1", "log.retention.ms", "5000"),
    ("BROKER", "", "message.max.bytes", "2000000"),
    ("GROUP", "g", "consumer.session.timeout.ms", "50000"),
    ("CLIENT_METRICS", "s", "interval.ms", "1000"),
]
"""Type, name, key and value of what is changed before everything is described."""

PERHAPS_REFUSED = [
    ("TOPIC", "t", "retention.ms", "abc"),
    ("TOPIC", "t", "retention.ms", "-5"),
    ("TOPIC", "t", "nope", "1"),
    ("TOPIC", "t", "cleanup.policy", "x"),
    ("TOPIC", "t", "cleanup.policy", ""),
    ("TOPIC", "t", "cleanup.policy", "none"),
    ("TOPIC", "t", "segment.bytes", "1000"),
    ("TOPIC", "t", "min.cleanable.dirty.ratio", "1.5"),
    ("TOPIC", "t", "preallocate", "yes"),
    ("TOPIC", "t", "compression.type", "lzma"),
    ("TOPIC", "t", "min.compaction.lag.ms", "9223372036854775807"),
    ("TOPIC", "t", "internal.segment.bytes", "1000"),
    ("TOPIC", "t", "retention.bytes", "-7"),
    ("TOPIC", "t", "segment.bytes", "2147483648"),
    ("TOPIC", "t", "remote.storage.enable", "true"),
    ("BROKER", "1", "num.partitions", "3"),
    ("BROKER", "1", "log.retention.hours", "3"),
    ("BROKER", "1", "unknown.key", "3"),
    ("BROKER", "1", "message.max.bytes", "x"),
    ("BROKER", "", "listeners", "PLAINTEXT://:1"),
    ("BROKER", "", "log.retention.ms", "0"),
    ("BROKER", "", "ssl.keystore.location", "/x"),
    ("BROKER", "1", "listener.name.foo.ssl.keystore.location", "/x"),
    ("GROUP", "g", "consumer.session.timeout.ms", "10"),
    ("GROUP", "g", "nope", "10"),
    ("GROUP", "g", "consumer.heartbeat.interval.ms", "100"),
    ("GROUP", "g", "streams.num.standby.replicas", "9"),
    ("GROUP", "g", "share.auto.offset.reset", "x"),
    ("CLIENT_METRICS", "s", "interval.ms", "1"),
    ("CLIENT_METRICS", "s", "nope", "1"),
    ("CLIENT_METRICS", "s", "match", "foo=bar"),
    ("CLIENT_METRICS", "s", "match", "client_id=["),
    ("CLIENT_METRICS", "s", "match", "client_id"),
    ("CLIENT_METRICS", "s", "metrics", "a,b,*"),
    ("BROKER", "1", "min.insync.replicas", "2"),
    ("BROKER", "", "num.network.threads", "1000"),
]

TEXTS: list[str] = [
    "a=b",
    "a = b ",
    "a:b",
    "a b",
    "a\tb",
    " a=b",
    "a",
    "a=",
    "=b",
    "a==b",
    "a= =b",
    "a : b",
    "a  :  = b",
    "#c\na=b",
    "!c\na=b",
    "  # c\na=b",
    "a=b#c",
    "a=b\\\nc",
    "a=b\\\n   c",
    "a=b\\\\\nc=d",
    "a=b\\",
    "a\\=b=c",
    "a\\ b=c",
    "a\\:b=c",
    "a=\\t\\n\\r\\f\\x\\\\",
    "a=\\u0041\\u00e9",
    "a=\\ud83d\\ude00",
    "\\u0061=1",
    "a=1\r\nb=2\rc=3\n\n\nd=4",
    "a=1\na=2",
    "a=\\\n",
    "a=\\\n\nb=c",
    "a\\\nb=c",
    "a\\\n=c",
    "#x\\\ny=z",
    "   \n\t\f\na=b",
    "a=b\\\n#c",
    "a=b\\\n\\\nc",
    "\\#a=b",
    "a=\\#b",
    "k=v\\ ",
    "k=v ",
    "a\fb",
    "key\\\n   cont : value",
    "\\",
    "a=1\n\\",
    "\\\n\\\na=b",
    "a\\\\=b",
    "a\\\\\\=b=c",
]

SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": ConfigSource.TOPIC,
    "DYNAMIC_BROKER_CONFIG": ConfigSource.BROKER,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": ConfigSource.ALL_BROKERS,
    "STATIC_BROKER_CONFIG": ConfigSource.STATIC,
    "DEFAULT_CONFIG": ConfigSource.DEFAULT,
    "DYNAMIC_CLIENT_METRICS_CONFIG": ConfigSource.CLIENT_METRICS,
    "DYNAMIC_GROUP_CONFIG": ConfigSource.GROUP,
}


def ask(class_path: str, *arguments: str) -> Any:
    """What ConfigFromKafka.java prints."""
    command = ["java", "-cp", class_path, str(HERE / "ConfigFromKafka.java"), *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def asked_broker(class_path: str) -> Any:
    """What a broker says that is started for it."""
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "server.properties"
        settings = SERVER | {"log.dirs": f"{directory}/data"}
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = ["java", "-cp", class_path]
        format_storage = [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(config)]
        subprocess.run(format_storage, check=True, stdout=subprocess.DEVNULL)
        with subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=subprocess.DEVNULL) as kafka:
            try:
                while socket.socket().connect_ex(("127.0.0.1", PORT)):
                    time.sleep(0.1)
                changes = [*map(json.dumps, CHANGES), "--", *map(json.dumps, PERHAPS_REFUSED)]
                answer = ask(class_path, "broker", f"127.0.0.1:{PORT}", *changes)
            finally:
                kafka.terminate()
        return json.loads(json.dumps(answer).replace(f"{directory}/data", DATA))


def described(keys: dict[str, Any]) -> dict[str, Any]:
    """A resource's keys, those that Kohort has no use for left out, with sources as the protocol numbers them."""
    for key in keys.values():
        key["source"] = SOURCES[key["source"]]
        key["synonyms"] = [[name, value, SOURCES[source]] for name, value, source in key["synonyms"]]
    return keys


def vectors(class_path: str) -> dict[str, Any]:
    """All of config.json."""
    definitions, answers = ask(class_path, "definitions"), asked_broker(class_path)
    broker = definitions.pop("broker")
    dynamic = definitions.pop("dynamic")
    told = {kind: described(keys) for kind, keys in answers["described"].items()}
    told["broker"] = {name: key for name, key in told["broker"].items() if name in BROKER_KEYS}
    return {
        "broker": {name: [*row, name in dynamic] for name, row in broker.items() if name in BROKER_KEYS},
        "other_broker": {name: kind for name, (kind, _) in broker.items() if name not in BROKER_KEYS},
        **definitions,
        "described": told,
        "refusals": [[*change, code] for change, code in zip(PERHAPS_REFUSED, answers["refusals"], strict=True)],
    }


def lines(value: Any, depth: int) -> str:
    """JSON with a line for each item down to a depth."""
    if not depth or not isinstance(value, (dict, list)):
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(lines(item, depth - 1) for item in value) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {lines(item, depth - 1)}" for key, item in value.items()) + "\n}"


if __name__ == "__main__":
    made = vectors(sys.argv[1])
    by_kind = ",\n".join(f"{json.dumps(kind)}: {lines(of, 1 + (kind == 'described'))}" for kind, of in made.items())
    (HERE / "config.json").write_text(f"{{\n{by_kind}\n}}\n")
    (HERE / "properties.json").write_text(lines(ask(sys.argv[1], "properties", *TEXTS), 1) + "\n")
