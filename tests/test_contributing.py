"""CONTRIBUTING.md and ARCHITECTURE.md name what is there, and the map of the tests is complete."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.documents import ROOT, Place, code, make_targets, places
from tests.smoke import areas, targets

CONTRIBUTING: Final = ROOT / "CONTRIBUTING.md"
PAGES: Final = [page for page in (CONTRIBUTING, ROOT / "ARCHITECTURE.md") if page.exists()]


class Row(NamedTuple):
    """A row of the map of the tests."""

    area: str
    folder: str
    shows: str
    seconds: str


def rows() -> list[Row]:
    cells = re.findall(r"^\| ([a-z]+) \| `(tests[\w/]*)/` \| (.+) \| (.+) \|$", CONTRIBUTING.read_text(), re.MULTILINE)
    return [Row(*row) for row in cells]


def folder_of(path: str) -> str:
    """The folder of an entry of an area, which is a folder or a pattern of files."""
    return str(Path(path).parent) if path.endswith(".py") else path


def holds(area: str, folder: str) -> bool:
    """Whether an area runs the tests of a folder."""
    entries = areas()[area]
    return any(folder == folder_of(entry) or folder.startswith(f"{entry}/") for entry in entries)


# The documents


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_places_are_there(page: Path) -> None:
    named = places(page.read_text())
    assert len(named) > 20
    assert not sorted({wrong for place in named if (wrong := place.wrong())})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_are_there(page: Path) -> None:
    known = targets() | {f"test-{area}" for area in areas()}
    assert not set(make_targets(page.read_text())) - known


def test_a_place_that_is_not_there_is_found() -> None:
    text = """`broker/gone.py`, `tests/documents.py::Place.gone`, `tests/documents.py::Place.wrong`, `a/b` `make x`

```
`src/not/looked/at.py`
```
"""
    assert [place.wrong() for place in places(text)] == [
        "broker/gone.py isn't there",
        "tests/documents.py has no Place.gone",
        None,
        "a/b isn't there",
    ]
    assert make_targets(text) == ["x"]
    assert Place("coordinator/*/states.py", "MemberState").wrong() is None


# The map of the tests


def test_each_folder_of_tests_is_on_the_map() -> None:
    there = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert sorted(row.folder for row in rows()) == sorted(there)


def test_each_test_is_in_an_area() -> None:
    entries = [path for folders in areas().values() for entry in folders for path in ROOT.glob(entry)]
    within = {file for path in entries for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    assert within == set((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.folder)
def test_a_row_names_the_area_that_runs_its_folder(row: Row) -> None:
    assert row.area in areas()
    assert holds(row.area, row.folder)
    assert re.fullmatch(r"\d+", row.seconds)


@pytest.mark.parametrize("area", areas())
def test_an_area_runs_folders_that_are_there(area: str) -> None:
    assert all(list(ROOT.glob(entry)) for entry in areas()[area])
    command = ["make", "--dry-run", f"test-{area}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    ran = " ".join(re.findall(r'/pytest .*?\.xml ([^"]*)"', done.stdout))
    assert ran.split() == areas()[area]


def test_an_area_that_is_not_there_is_told_of_before_anything_is_set_up() -> None:
    done = subprocess.run(["make", "test-abacus"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert "no tests of 'abacus'" in done.stderr
    assert all(area in done.stderr for area in areas())


def test_help_lists_the_areas() -> None:
    shown = subprocess.run(["make", "help"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    for area, folders in areas().items():
        assert re.search(rf"make test-{area} +\S.*: {re.escape(' '.join(folders))}$", shown, re.MULTILINE), area


def test_code_blocks_are_left_out() -> None:
    assert code("`a`\n```\n`b`\n```\n`c`") == ["a", "c"]
