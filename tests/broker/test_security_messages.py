"""Each line that the broker writes about who gets in is explained in docs/operations.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "operations.md").read_text())
MODULES = [
    "broker/access_rules",
    "broker/audit",
    "broker/authentication",
    "broker/client_quotas",
    "broker/connection",
    "broker/delegation_tokens",
    "broker/dispatch",
    "broker/jwks",
    "broker/secured/authority",
    "broker/secured/broker_settings",
    "broker/secured/files",
    "broker/secured/first_user",
    "broker/keystores",
    "broker/listener",
    "broker/metrics/endpoint",
    "broker/newcomers",
    "broker/oauthbearer",
    "broker/request_memory",
    "broker/sasl_mechanisms",
    "broker/scram_users",
    "broker/secret",
    "broker/secured/secured",
    "broker/throttling",
    "broker/tls",
    "broker/tls_acceptor",
    "http_access",
    "spark/executor_rpc/strangers",
]
STARTING = [
    "broker/tls",
    "broker/keystores",
    "broker/sasl_mechanisms",
    "broker/config/listeners",
    "broker/oauthbearer",
    "broker/jwks",
    "broker/secured/authority",
    "broker/secured/broker_settings",
    "broker/secured/files",
    "broker/secured/first_user",
]
LOGGED = {"debug", "info", "warning", "error", "exception", "log"}


def templates(module: str) -> Iterator[str]:
    """The texts of a module's lines, and the audit's, which are put into variables."""
    tree = ast.parse((ROOT / "src" / "kohort" / f"{module}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED:
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Assign) and [getattr(each, "id", "") for each in node.targets] == ["template"]:
            assert isinstance(node.value, ast.Constant)
            yield node.value.value


def beginning(template: str) -> str:
    """What comes before the first argument or field; after it, if a line begins with one."""
    parts = [part for part in re.split(r"\S*%\S*", template) if len(part.strip()) > 5]
    return parts[0].strip(" ,:;(") if parts else template


LINES = sorted({(module, beginning(each)) for module in MODULES for each in templates(module) if each != "%s"})


def test_there_are_lines() -> None:
    assert len(LINES) > 12


@pytest.mark.parametrize(("module", "text"), LINES)
def test_each_is_explained(module: str, text: str) -> None:
    if text == "%s principal=%s host=%s operation=%s resource=%s:%s api=%s":
        text = "denied principal="
    assert text in PAGE


@pytest.mark.parametrize("source", STARTING)
def test_each_sentence_that_ends_a_start_is_explained(source: str) -> None:
    tree = ast.parse((ROOT / "src" / "kohort" / f"{source}.py").read_text())
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ConfigError"):
            continue
        pieces = [
            re.sub(r"\s+", " ", part.value).strip(" ,:;()")
            for each in node.args
            for part in (each.values if isinstance(each, ast.JoinedStr) else [each])
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        said = [piece for piece in pieces if len(piece) > 3]
        assert not said or any(piece in PAGE or piece[:40] in PAGE for piece in said), said
