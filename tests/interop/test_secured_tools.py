"""Apache Kafka's tools over SASL_SSL, at a server with access rules: what an administrator may, and others may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .java.jvm import Finished, Tools
from .secured import AUTHORIZED, USER, SecureKohort, add_user, java_properties

RunTool = Callable[..., Finished]

PACKAGE = "org.apache.kafka.tools."
CONFIGS = "kafka.admin.ConfigCommand"
ACLS, FEATURES, QUORUM = (PACKAGE + name for name in ("AclCommand", "FeatureCommand", "MetadataQuorumCommand"))
REASSIGN, TOKENS = PACKAGE + "reassign.ReassignPartitionsCommand", PACKAGE + "DelegationTokenCommand"
TOPICS = PACKAGE + "TopicCommand"

STRANGER = "stranger"
ENTITIES = {"users": "--entity-type users --entity-name u", "clients": "--entity-type clients --entity-name c",
            "ips": "--entity-type ips --entity-name 10.0.0.9"}  # fmt: skip
QUOTAS = {"users": "request_percentage", "clients": "consumer_byte_rate", "ips": "connection_creation_rate"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKohort]:
    settings = {**AUTHORIZED, "delegation.token.secret.key": "a secret"}
    server = SecureKohort(tmp_path_factory.mktemp("secured"), settings)
    server.start()
    add_user(server.bootstrap, STRANGER, STRANGER)
    yield server
    server.stop()


@pytest.fixture
def run_tool(tools: Tools, secured: SecureKohort, tmp_path: Path) -> RunTool:
    """Runs a tool as an administrator; it must succeed."""
    settings = java_properties(secured, tmp_path, "SASL_SSL", "SCRAM-SHA-512")
    bootstrap = f"localhost:{secured.ports['SASL_SSL']}"

    def run(main: str, *arguments: str) -> Finished:
        return tools.succeed(bootstrap, main, "--command-config", str(settings), *arguments)

    return run


@pytest.fixture
def run_as_stranger(tools: Tools, secured: SecureKohort, tmp_path: Path) -> Callable[..., str]:
    """Runs a tool as a user without rights; what it says."""
    settings = java_properties(secured, tmp_path, "SASL_SSL", "SCRAM-SHA-256", STRANGER, STRANGER)
    bootstrap = f"localhost:{secured.ports['SASL_SSL']}"

    def run(main: str, *arguments: str) -> str:
        done = tools.run(main, "--bootstrap-server", bootstrap, "--command-config", str(settings), *arguments)
        return done.out + done.err

    return run


@pytest.mark.parametrize("kind", ENTITIES)
def test_quotas(run_tool: RunTool, kind: str) -> None:
    entity, key = ENTITIES[kind].split(), QUOTAS[kind]
    run_tool(CONFIGS, *entity, "--alter", "--add-config", f"{key}=70")
    assert f"{key}=70.0" in run_tool(CONFIGS, *entity, "--describe").out
    run_tool(CONFIGS, *entity, "--alter", "--delete-config", key)
    assert key not in run_tool(CONFIGS, *entity, "--describe").out


def test_access_rules(run_tool: RunTool, run_as_stranger: Callable[..., str]) -> None:
    rule = ("--allow-principal", f"User:{STRANGER}", "--operation", "Describe", "--topic", "seen")
    run_tool(TOPICS, "--create", "--topic", "seen")
    run_tool(TOPICS, "--create", "--topic", "unseen")
    run_tool(ACLS, "--add", *rule)
    assert f"principal=User:{STRANGER}" in run_tool(ACLS, "--list", "--topic", "seen").out
    assert run_as_stranger(TOPICS, "--list").split() == ["seen"]
    run_tool(ACLS, "--remove", "--force", *rule)
    assert run_as_stranger(TOPICS, "--list").split() == []


def test_a_reassignment(run_tool: RunTool, tmp_path: Path) -> None:
    run_tool(TOPICS, "--create", "--topic", "moved")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [1]}]}))
    begun = run_tool(REASSIGN, "--reassignment-json-file", str(plan), "--execute", "--throttle", "1000000")
    assert "Successfully started partition reassignment for moved-0" in begun.out
    verified = run_tool(REASSIGN, "--reassignment-json-file", str(plan), "--verify")
    assert "Reassignment of partition moved-0 is completed." in verified.out
    assert "Clearing broker-level throttles on broker 1" in verified.out


def test_what_a_cluster_is(run_tool: RunTool) -> None:
    assert "LeaderId:" in run_tool(QUORUM, "describe", "--status").out
    assert "metadata.version" in run_tool(FEATURES, "describe").out


DENIED = {
    "quotas": (CONFIGS, "--alter", "--add-config", "request_percentage=1", *ENTITIES["users"].split()),
    "rules": (ACLS, "--list"),
    "quorum": (QUORUM, "describe", "--status"),
    "features": (FEATURES, "disable", "--feature", "share.version"),
    "topics": (TOPICS, "--create", "--topic", "theirs"),
}


@pytest.mark.parametrize("what", DENIED)
def test_a_stranger_may_not(run_as_stranger: Callable[..., str], what: str) -> None:
    assert "authorization failed" in run_as_stranger(*DENIED[what]).lower()


def test_tokens_of_others_stay_hidden(run_tool: RunTool, run_as_stranger: Callable[..., str]) -> None:
    made = run_tool(TOKENS, "--create", "--max-life-time-period", "-1").out
    token_id, secret = made.splitlines()[-1].split()[:2]
    described = ("--describe", "--owner-principal", f"User:{USER}")
    assert token_id in run_tool(TOKENS, *described).out
    assert token_id not in run_as_stranger(TOKENS, *described)
    assert "Exception" in run_as_stranger(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    run_tool(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
