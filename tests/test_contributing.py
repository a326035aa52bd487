"""CONTRIBUTING.md and ARCHITECTURE.md name what is there, and the map of the tests is complete."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.documents import ROOT, Place, code, make_targets, methods, names, places
from tests.smoke import areas, targets

CONTRIBUTING: Final = ROOT / "CONTRIBUTING.md"
PAGES: Final = [page for page in (CONTRIBUTING, ROOT / "ARCHITECTURE.md") if page.exists()]
RECIPES: Final = dict(
    re.findall(r"^### (To .+)\n((?:(?!^##).*\n?)+)", CONTRIBUTING.read_text(), re.MULTILINE)  # by what they change
)


class Row(NamedTuple):
    """A row of the map of the tests."""

    area: str
    folder: str
    shows: str
    seconds: str


OUTSIDE = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
"""The environment without the make that runs these tests, which would have make say where it is."""


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
    wrong = sorted({what for place in named if (what := place.wrong())})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_are_there(page: Path) -> None:
    known = targets() | {f"test-{area}" for area in areas()}
    assert not set(make_targets(page.read_text())) - known


def test_the_house_names_each_package() -> None:
    """Those of one or two levels; in a table, beside what they are."""
    source = ROOT / "src" / "kohort"
    packages = {
        file.parent.relative_to(source) for pattern in ("*/", "*/*/") for file in source.glob(f"{pattern}__init__.py")
    }
    named = " ".join(re.findall(r"^\| (`.*?/`) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE))
    parents = {package.parent for package in packages}
    missing = sorted(f"{package}/" for package in packages - parents if f"{package}/" not in code(named))
    assert not missing, missing


def test_methods_are_there() -> None:
    there = {name for file in (ROOT / "src").rglob("*.py") for name in names(file)}
    assert not [method for page in PAGES for method in methods(page.read_text()) if method not in there]


def test_threads_are_there() -> None:
    threads = [span for page in PAGES for span in code(page.read_text()) if re.fullmatch("kohort-[a-z]+", span)]
    source = "".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    assert threads
    assert not [thread for thread in threads if f'"{thread}"' not in source]


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


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_says_what_to_edit_and_what_to_run(recipe: str) -> None:
    text = RECIPES[recipe]
    edit, run = (re.search(rf"^\*\*{word}\*\* (?:.+\n?)+", text, re.MULTILINE) for word in ("Edit", "Run"))
    assert edit and run, "a recipe has a paragraph **Edit** and a paragraph **Run**"
    assert any(not place.path.startswith("tests/") for place in places(edit[0])), "a file to edit"
    assert make_targets(run[0]), "a target of the Makefile"
    assert any(place.path.startswith("tests/") for place in places(run[0])), "tests that show it"


def test_there_are_recipes() -> None:
    assert len(RECIPES) >= 14


# The map of the tests


def test_each_folder_of_tests_is_on_the_map() -> None:
    there = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    on_map = {row.folder for row in rows()}
    assert len(rows()) == len(on_map)
    assert (sorted(there - on_map), sorted(on_map - there)) == ([], [])  # missing, and too many


def test_each_test_is_in_an_area() -> None:
    entries = [path for folders in areas().values() for entry in folders for path in ROOT.glob(entry)]
    within = {file for path in entries for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    assert sorted(set((ROOT / "tests").rglob("test_*.py")) - within) == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.folder)
def test_a_row_names_the_area_that_runs_its_folder(row: Row) -> None:
    assert row.area in areas()
    assert holds(row.area, row.folder)
    assert re.fullmatch(r"\d+", row.seconds)


@pytest.mark.parametrize("area", areas())
def test_an_area_runs_folders_that_are_there(area: str) -> None:
    assert all(list(ROOT.glob(entry)) for entry in areas()[area])
    command = ["make", "--dry-run", f"test-{area}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=OUTSIDE, check=True)
    ran = " ".join(re.findall(r"/pytest .*?\.xml ([^']*)'", done.stdout))
    assert ran.split() == areas()[area]


def test_an_area_that_is_not_there_is_told_of_before_anything_is_set_up() -> None:
    done = subprocess.run(["make", "test-abacus"], capture_output=True, text=True, cwd=ROOT, env=OUTSIDE, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert "no tests of 'abacus'" in done.stderr
    assert all(area in done.stderr for area in areas())


def test_help_lists_the_areas() -> None:
    shown = subprocess.run(["make", "help"], capture_output=True, text=True, cwd=ROOT, env=OUTSIDE, check=True).stdout
    for area, folders in areas().items():
        assert re.search(rf"make test-{area} +\S.*: {re.escape(' '.join(folders))}$", shown, re.MULTILINE), area


def test_code_blocks_are_left_out() -> None:
    assert code("`a`\n```\n`b`\n```\n`c`") == ["a", "c"]
