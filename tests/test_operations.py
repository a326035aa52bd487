"""docs/operations.md has every message that a damaged or starved broker prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kohort.log.damage import DamageKind

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kohort"
PAGE = (ROOT / "docs" / "operations.md").read_text()

OTHER_PAGES = {
    "broker/connection.py", "broker/tls.py",  # who gets in: docs/connections.md
    "broker/group_coordinator.py", "broker/regex_resolver.py",  # what a group asks for
    "broker/streams/internal_topics.py", "broker/streams/placer.py",
}  # fmt: skip
"""Modules whose messages are about something else."""

ADVICE = (
    "the response to %s v%d",
    "%s v%d failed",
    "clients on other machines",
    "topics need a replication factor",
    "connection refused peer=%s:%d",
)
"""Messages of a start, of who gets in, or of an error in the broker itself."""

LOGGED = ("log.warning", "log.error", "_log.warning", "_log.error")
PARTS = re.compile(r"%[sd]|\{[^}]*\}")


def messages() -> Iterator[tuple[str, str]]:
    """Modules, and the formats of what they log as a warning or an error; what comes with a traceback is one row."""
    for path in sorted([*(SOURCE / "log").glob("*.py"), *(SOURCE / "broker").rglob("*.py")]):
        module = str(path.relative_to(SOURCE))
        if module in OTHER_PAGES:
            continue
        for call in calls(path):
            if ast.unparse(call.func) in LOGGED:
                text = ast.literal_eval(call.args[0])
                if not text.startswith(ADVICE):
                    yield module, text


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def reasons(file: str, function: str) -> Iterator[str]:
    """What is said where a function of a module is called: its last argument, without what is put in."""
    for call in calls(SOURCE / file):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == function:
            for node in ast.walk(call.args[-1]):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 8:
                    yield node.value


def longest(text: str) -> str:
    """The longest part of a format that is always the same."""
    return max((part.strip(" :;,.=()") for part in PARTS.split(text)), key=len)


def test_every_message_is_there() -> None:
    found = list(messages())
    assert len(found) > 30
    missing = [f"{module}: {text}" for module, text in found if longest(text) not in PAGE]
    assert missing == []


def test_every_reason_of_a_loss_is_there() -> None:
    found = [*reasons("log/recovery.py", "missing"), *reasons("broker/log_manager.py", "_set_aside")]
    assert len(found) > 4
    missing = {text for text in found if longest(text) not in PAGE}
    assert not missing


def test_every_kind_of_damage_is_there() -> None:
    assert not {kind.value for kind in DamageKind if f"`{kind.value}`" not in PAGE}


def test_what_a_pipeline_says_at_its_start_is_there() -> None:
    found = [
        ast.literal_eval(call.args[0])
        for call in calls(SOURCE / "spark" / "program" / "notes.py")
        if ast.unparse(call.func) in ("log.info", "log.warning")
    ]
    assert len(found) == 2
    assert not [text for text in found if longest(text) not in PAGE]
