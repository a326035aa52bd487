"""Each handler file declares what it serves, as docs/compatibility.md says, and has tests under its name."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from kohort.broker import handlers
from kohort.protocol.messages import API_NAMES, api, module_name
from tests.documents import ROOT

FILES: Final = sorted(path.stem for path in Path(handlers.__path__[0]).glob("[a-z]*.py"))
SERVED: Final = {API_NAMES[key]: served for key, served in handlers.served_apis()}


@pytest.mark.parametrize("name", FILES)
def test_a_file_serves_the_api_of_its_name(name: str) -> None:
    served = import_module(f"{handlers.__name__}.{name}").SERVED
    which = api(served.request.__message__.key)
    assert module_name(which.name) == name
    assert SERVED[which.name] is served
    first, last = served.versions
    assert which.versions[0] <= first <= last <= which.versions[-1]


def test_each_file_has_tests_under_its_name() -> None:
    assert set(FILES) <= {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}


def test_the_index_has_each_file() -> None:
    assert sorted(map(module_name, SERVED)) == FILES


def test_an_api_without_a_file_is_not_served() -> None:
    assert handlers.handler(4) is None  # LeaderAndIsr, between brokers
    assert handlers.handler(999) is None


def test_the_page_names_what_is_served_in_every_version() -> None:
    page = (ROOT / "docs/compatibility.md").read_text()
    rows = re.search(r"^Served, each in every version .+?\n\n\|.+?\n\n", page, re.MULTILINE | re.DOTALL)
    assert rows is not None
    named = re.findall(r"\b(?:[A-Z][a-z]+){2,}\b|\b(?:Fetch|Heartbeat|Metadata|Produce)\b", rows[0])
    assert sorted(set(named)) == sorted(SERVED)
    narrower = [
        name
        for name, served in SERVED.items()
        if range(served.versions[0], served.versions[1] + 1) != api(name).versions
    ]
    assert not narrower


def test_files_are_imported_on_first_use() -> None:
    program = (
        "import sys, kohort.broker.server; from kohort.broker import handlers; handlers.handler(12);"
        "print(*(name for name in sys.modules if name.startswith('kohort.broker.handlers.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["kohort.broker.handlers.heartbeat"]
