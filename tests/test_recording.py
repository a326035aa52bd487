"""What scripts/recording types still does what docs/images/terminal.svg shows."""

from __future__ import annotations

import html
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.interop.apache_kafka import free_ports

ROOT = Path(__file__).parents[1]


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which has no suffix, with this environment's modules for what it starts."""
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    for name in ("KOHORT_BOOTSTRAP_SERVERS", "KOHORT_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    loader = importlib.machinery.SourceFileLoader("recording", str(ROOT / "scripts" / "recording"))
    spec = importlib.util.spec_from_loader("recording", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    return module


def test_its_commands_succeed_and_are_those_of_the_picture(
    recording: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a port of its own, as others may use the known one. The script exits where a command fails."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (port,) = free_ports(1)
    recorder, appears = recording.record(f"127.0.0.1:{port}")
    said = recorder.export_text()
    assert appears == sorted(appears)
    for expected in (f"kohort ready on 127.0.0.1:{port}", "two teapots", "billing", "orders"):
        assert expected in said
    lines = re.findall(r"<text [^>]*>([^<]*)</text>", recording.PICTURE.read_text())
    shown = re.sub(r"\s+", " ", html.unescape("".join(lines)))
    for command in recording.COMMANDS:
        assert f"$ {command}" in shown, shown
