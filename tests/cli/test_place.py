"""`kohort place`, as a user calls it with a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.cli.place import command as place
from kohort.cli.placing.group_file import read_group
from kohort.coordinator.placement import ASSIGNORS, Group, Member, SubtopologyTasks
from kohort.coordinator.placement.what_if import parse_change

from .support import invoke

ROOT = Path(__file__).parents[2]

TWO = """\
standbys: 1
rack_tags: [zone]
subtopologies:
  counts: {partitions: 4, state_stores: 2}
  filter: {partitions: 8}
members:
  m1: {tags: {zone: a}, active: {counts: 0-1, filter: 0-3}, standby: {counts: 2-3}}
  m2: {tags: {zone: b}, active: {counts: 2-3, filter: 4-7}, standby: {counts: 0-1}}
ends:
  counts: 1000
"""
"""A balanced group of two instances."""


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return str(path)


def lines(text: str) -> dict[str, list[str]]:
    """The cells of each line of the tables, by the first of them."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]
    return {row[0]: row[1:] for row in cells}


# tables


def test_a_balanced_group_stays_as_it_is(two: str) -> None:
    done = invoke("place", two)
    assert (done.exit_code, done.stderr) == (0, "")
    found = lines(done.stdout)
    assert found["m1"] == ["a", "6", "counts: 0-1; filter: 0-3", "counts: 2-3"]
    assert found["active tasks of a member"] == ["6", "6", "6"]
    assert found["tasks moved"] == ["0 of 12", "0 of 12"]
    assert found["to restore"] == ["nothing", "nothing"]
    assert found["standbys placed"] == ["4 of 4", "4 of 4", "4 of 4"]
    assert found["each in a zone of its own"][0] == "4 of 4 possible"


def test_what_happens_if_two_instances_are_added(two: str) -> None:
    done = invoke("place", two, "--what-if", "add=2,zone=c")
    assert done.exit_code == 0
    found = lines(done.stdout)
    assert "Placed by optimal, after the changes" in found
    assert found["active tasks of a member"] == ["6", "3", "3"]
    assert found["subtopology counts"] == ["2", "1", "1"]
    assert found["state stores of a process"] == ["4", "2", "2"]
    assert found["tasks moved"][0] == "6 of 12"
    assert found["to restore"][0] == "2,000 records"
    assert re.search(r"^ counts: \d +m[12] +new-[12] +1,000 records *$", done.stdout, re.MULTILINE)
    assert re.search(r"^ filter: .* +m[12] +new-[12] +nothing *$", done.stdout, re.MULTILINE)


def test_what_happens_if_a_member_goes(two: str) -> None:
    found = lines(invoke("place", two, "--what-if", "remove=m2", "--what-if", "standbys=0").stdout)
    assert found["m2"] == ["b", "gone", "counts: 2-3; filter: 4-7"]
    assert found["m1"][1:] == ["12", "counts: 0-3; filter: 0-7", "counts: 2-3; filter: 4-7"]
    assert found["tasks whose owner is gone, or that had none"] == ["6", "6"]
    assert found["to restore"] == ["nothing", "nothing"]  # it had the standbys


def test_a_group_where_nobody_has_anything(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text("subtopologies: {a: {partitions: 4}}\nmembers: {m1: , m2: }")
    found = lines(invoke("place", str(path)).stdout)
    assert found[""] if "" in found else found["optimal"] == ["sticky"]
    assert found["active tasks of a member"] == ["2", "2"]
    assert "tasks moved" not in found
    then = lines(invoke("place", str(path), "--what-if", "add=2").stdout)
    assert then["active tasks of a member"] == ["2", "1", "1"]
    assert then["tasks moved"] == ["2 of 4", "2 of 4"]


def test_what_is_out_of_balance_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lopsided.yaml"
    path.write_text("subtopologies: {a: {partitions: 4}}\nmembers: {m1: {active: {a: 0-3}}, m2: }")
    found = lines(invoke("place", str(path), "--assignor", "optimal").stdout)
    assert found["active tasks of a member"] == ["0 to 4, 2 out of balance", "2"]


def test_of_many_subtopologies_those_that_matter_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    names = [f"s{number}" for number in range(20)]
    active = ", ".join(f"{name}: {'0-1' if name == 's7' else 0}" for name in names)
    other = ", ".join(f"{name}: {1 if name != 's7' else '[]'}" for name in names)
    parts = ", ".join(f"{name}: {{partitions: 2}}" for name in names)
    path.write_text(
        f"subtopologies: {{{parts}}}\nmembers: {{m1: {{active: {{{active}}}}}, m2: {{active: {{{other}}}}}}}"
    )
    found = lines(invoke("place", str(path)).stdout)
    assert found["worst of 20 subtopologies"][0] == "1 out of balance"
    assert [name for name in found if name.startswith("subtopology")] == ["subtopology s7"]


def test_long_lists_of_moves_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    parts = ", ".join(f"s{number:02}: {{partitions: 2}}" for number in range(60))
    active = ", ".join(f"s{number:02}: 0-1" for number in range(60))
    path.write_text(f"subtopologies: {{{parts}}}\nmembers: {{m1: {{active: {{{active}}}}}, m2: }}")
    done = invoke("place", str(path))
    assert "and 20 more; --json has them all" in done.stdout
    moves = json.loads(invoke("place", str(path), "--json").stdout)["assignors"]["optimal"]["moves"]
    assert len(moves) == 60


def test_names_that_a_terminal_or_rich_would_obey(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    path.write_text('subtopologies: {"[red]a\\e[31m": {partitions: 1}}\nmembers: {"[b]m[/b]\\n": {}}')
    done = invoke("place", str(path))
    assert done.exit_code == 0
    assert "[b]m[/b]\\n" in done.stdout
    assert "[red]a\\x1b[31m: 0" in done.stdout
    assert "\x1b[31m" not in done.stdout


# JSON


def test_json_has_it_all(two: str) -> None:
    done = invoke("place", two, "--json", "--what-if", "add=1,zone=c", "--what-if", "remove=m2")
    found = json.loads(done.stdout)
    assert found["now"]["members"]["m2"] == {
        "process": "m2",
        "active": {"counts": [2, 3], "filter": [4, 5, 6, 7]},
        "standby": {"counts": [0, 1]},
    }
    assert set(found["assignors"]) == set(ASSIGNORS)
    then = found["assignors"]["optimal"]
    assert set(then["members"]) == {"m1", "new-1"}
    assert then["metrics"]["imbalance"] == 0
    assert then["metrics"]["total"] == {"tasks": 12, "members": 2, "least": 6, "most": 6, "imbalance": 0}
    assert all(move["from"] == "m2" for move in then["moves"] if move["to"] == "new-1" and move["partition"] > 1)
    restored = sum(move["restore"]["records"] for move in then["moves"])
    assert restored == then["metrics"]["restore"]["records"]


def test_json_of_a_group_where_nobody_has_anything() -> None:
    found = json.loads(
        invoke("place", "-", "--json", stdin="{subtopologies: {a: {partitions: 1}}, members: {m1: {}}}").stdout
    )
    assert found["now"] is None
    assert found["assignors"]["sticky"]["members"]["m1"]["active"] == {"a": [0]}


# exit codes


NEEDS_OR_TOOLS = """\
subtopologies: {one: {partitions: 1, state_stores: 1}, three: {partitions: 4, state_stores: 3}}
members: {m01: , m02: , m03: , m04: , m05: , m06: , m07: , m08: , m09: , m10: , m11: , m12: }
"""


@pytest.fixture
def no_or_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "ortools"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("no_or_tools")
def test_without_or_tools_a_small_group_is_placed(two: str) -> None:
    done = invoke("place", two, "--what-if", "add=1", "--assignor", "optimal")
    assert done.exit_code == 0, done.output
    assert "Placed by optimal" in done.output


@pytest.mark.usefixtures("no_or_tools")
def test_without_or_tools_a_group_that_needs_it_is_placed_by_sticky() -> None:
    done = invoke("place", "-", stdin=NEEDS_OR_TOOLS)
    assert done.exit_code == 0
    assert "Placed by sticky" in done.output
    assert done.stderr == "note: placing this group by optimal needs ortools: pip install 'kohort[placement]'\n"


@pytest.mark.usefixtures("no_or_tools")
def test_without_or_tools_optimal_says_what_to_install() -> None:
    done = invoke("place", "-", "--assignor", "optimal", stdin=NEEDS_OR_TOOLS)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: placing this group by optimal needs ortools: pip install 'kohort[placement]'\n"
    assert invoke("place", "-", "--assignor", "sticky", stdin=NEEDS_OR_TOOLS).exit_code == 0


def test_tasks_and_nobody_to_run_them() -> None:
    nobody = "{subtopologies: {a: {partitions: 3}}, members: {}}"
    done = invoke("place", "-", stdin=nobody)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: there are 3 tasks, and no member to run any; --what-if add=1 adds one\n"
    assert invoke("place", "-", "--what-if", "add=1", stdin=nobody).exit_code == 0


def test_nothing_to_place_is_placed() -> None:
    assert invoke("place", "-", stdin="{subtopologies: {}, members: {}}").exit_code == 0
    assert invoke("place", "-", stdin="{subtopologies: {}, members: {m1: {}}}").exit_code == 0


def test_standbys_that_cannot_be_placed(two: str) -> None:
    said = "4 of 8 standbys are placed (optimal): a task's copies are in processes of their own, and there are 2\n"
    done = invoke("place", two, "--what-if", "standbys=2")
    assert (done.exit_code, done.stderr) == (0, f"note: {said}")
    done = invoke("place", two, "--what-if", "standbys=2", "--strict")
    assert (done.exit_code, done.stderr) == (1, f"error: {said}")
    assert "active tasks of a member" in done.stdout


def test_a_mistake_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("subtopologies: {a: {partitions: x}}\nmembers: {}")
    done = invoke("place", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {path}, line 1, subtopologies.a.partitions: a whole number of at least 0 is needed here, not x\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one group is needed: FILE (- for standard input), or --from-group GROUP"),
        (["-", "--from-group", "g"], "one group is needed"),
        (["nowhere.yaml"], "can't read nowhere.yaml: No such file or directory"),
        (["/"], "/ is a directory"),
        (["-", "--assignor", "best"], "--assignor best: one of optimal, sticky is needed"),
        (["-", "--what-if", "add=none"], "--what-if add=none: add=2, add=2x4 (two of four members each)"),
        (["-", "--what-if", "remove=m9"], "--what-if: there is no member and no process 'm9'"),
        (["-", "--what-if", "add=100000"], "--what-if: more than 100,000 members can't be placed"),
        (["-", "--save", "/"], "--save: can't write /: Is a directory"),
        (["--from-group", "g", "-b", ""], "--bootstrap-server is empty"),
        (["--from-group", "g", "--config", "nowhere.properties"], "nowhere.properties"),
        (["--from-group", "g", "--timeout", "nan"], "--timeout"),
        (["--from-group", "g", "--timeout", "inf"], "--timeout"),
        (["--from-group", "g", "-b", "h:99999"], "h:99999"),
    ],
)
def test_calls_that_cannot_be_taken(arguments: list[str], said: str) -> None:
    done = invoke("place", *arguments, stdin=TWO)
    assert done.exit_code == 2
    assert said in done.stderr


def test_what_is_not_text() -> None:
    done = invoke("place", "-", stdin=b"\xff")
    assert done.exit_code == 2
    assert done.stderr == "error: standard input isn't UTF-8: byte 0 is wrong\n"


# --save


@pytest.mark.parametrize("name", ["saved.yaml", "saved.json"])
def test_what_is_saved_is_the_group_before_it_changes(two: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert invoke("place", two, "--save", str(path), "--what-if", "add=5").exit_code == 0
    assert path.read_text().startswith("{") == name.endswith("json")
    assert read_group(path.read_text(), name) == read_group(TWO, "two")
    assert invoke("place", str(path)).stdout == invoke("place", two).stdout


# --what-if


def ids(change: str, *members: Member) -> list[str]:
    group = Group((SubtopologyTasks("a", 1),), members)
    return [f"{member.process}/{member.id}" for member in parse_change(change).applied(group).members]


def test_instances_are_as_large_as_those_that_are_there() -> None:
    members = [Member(f"{process}-{number}", process) for process in ("p", "q") for number in (1, 2)]
    assert ids("add=1", *members)[4:] == ["new-1/new-1-1", "new-1/new-1-2"]
    assert ids("add=1", *members, Member("r"))[5:] == ["new-1/new-1-1", "new-1/new-1-2"]
    assert ids("add=2", Member("m1"), Member("m2", "m2"))[2:] == ["new-1/new-1", "new-2/new-2"]
    assert ids("add=1") == ["new-1/new-1"]
    assert ids("add=1x3", Member("m"))[1:] == ["new-1/new-1-1", "new-1/new-1-2", "new-1/new-1-3"]


def test_new_names_are_free_ones() -> None:
    assert ids("add=2", Member("new-1"), Member("m", "new-3"))[2:] == ["new-2/new-2", "new-4/new-4"]


def test_tags_of_new_instances() -> None:
    added = parse_change("add=1,zone=a,rack=").applied(Group((), ())).members
    assert added[0].tags == {"zone": "a", "rack": ""}


def test_a_process_goes_with_all_of_its_members() -> None:
    members = Member("a", "p"), Member("b", "p"), Member("p", "q"), Member("c", "q")
    assert ids("remove=q", *members) == ["p/a", "p/b"]
    assert ids("remove=p", *members) == ["p/a", "p/b", "q/c"]  # a member goes before a process of that name


@pytest.mark.parametrize(
    "change",
    ["", "add", "add=", "add=0", "add=-1", "add=1x0", "add=1x", "add=1,", "add=1,zone", "remove=", "standbys=", "x=1"],
)
def test_changes_that_are_none(change: str) -> None:
    with pytest.raises(ValueError, match="is needed"):
        parse_change(change)


# the command


def test_it_explains_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kohort.cli", "place", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"},
    )
    assert "kohort place --from-group word-count --what-if add=2" in done.stdout


def test_the_file_in_its_help_can_be_placed() -> None:
    (example,) = (line.strip() for line in (place.__doc__ or "").splitlines() if line.strip().startswith("{"))
    assert invoke("place", "-", "--what-if", "remove=m2", "--what-if", "standbys=1", stdin=example).exit_code == 0


def test_the_guide_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "placement.md").read_text()
    (shown,) = re.findall(r"^    \$ kohort (place .*)\n\n((?:    .*\n|\n)+)", page, re.MULTILINE)
    done = invoke("place", *shown[0].split()[1:])
    assert [line.rstrip() for line in done.stdout.splitlines() if line.strip()] == [
        line[4:].rstrip() for line in shown[1].splitlines() if line.strip()
    ]
    assert indented((ROOT / "docs" / "examples" / "word-count.yaml").read_text()) in page


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
