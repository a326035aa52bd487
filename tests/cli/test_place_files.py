"""The files that `kohort place` reads and writes: what they mean, and what is said about mistakes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.placing import group_file
from kohort.cli.placing.document import DocumentError
from kohort.cli.placing.group_file import MOST_TASKS, read_group
from kohort.cli.placing.group_text import group_as_json, group_as_yaml
from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId

FILE = """\
standbys: 1
rack_tags: [zone]
acceptable_lag: 500
subtopologies:
  "0": {partitions: 6, state_stores: 2}
  "1": {partitions: 12}
members:
  m1: {process: p1, tags: {zone: a}, active: {"0": 0-2, "1": 0-5}, standby: {"0": 3}}
  m2: {process: p2, tags: {zone: b}, active: {"0": [3, 4-5], "1": "6, 8-9"}}
  m3:
lags:
  p2: {"0": {0-1: 120, 2: 7}}
ends:
  "0": 250_000
"""


def tasks(subtopology: str, *partitions: int) -> frozenset[TaskId]:
    return frozenset(TaskId(subtopology, partition) for partition in partitions)


def mistake(text: str, file: str = "x.yaml") -> str:
    with pytest.raises(DocumentError) as caught:
        read_group(text, file)
    return str(caught.value)


def with_(old: str, new: str) -> str:
    assert old in FILE
    return FILE.replace(old, new, 1)


# what files mean


def test_a_whole_file() -> None:
    assert read_group(FILE, "x.yaml") == Group(
        subtopologies=(SubtopologyTasks("0", 6, 2), SubtopologyTasks("1", 12)),
        members=(
            Member("m1", "p1", {"zone": "a"}, tasks("0", 0, 1, 2) | tasks("1", *range(6)), tasks("0", 3)),
            Member("m2", "p2", {"zone": "b"}, tasks("0", 3, 4, 5) | tasks("1", 6, 8, 9)),
            Member("m3", "m3"),
        ),
        standbys=1,
        rack_tags=("zone",),
        lags={("p2", TaskId("0", 0)): 120, ("p2", TaskId("0", 1)): 120, ("p2", TaskId("0", 2)): 7},
        ends={TaskId("0", partition): 250_000 for partition in range(6)},
        acceptable_lag=500,
    )


def test_the_least_there_can_be() -> None:
    assert read_group("{subtopologies: {}, members: {}}", "x") == Group((), ())
    assert read_group("subtopologies:\nmembers:\n", "x") == Group((), ())


def test_json_means_the_same() -> None:
    same = {
        "standbys": 1,
        "rack_tags": ["zone"],
        "acceptable_lag": 500,
        "subtopologies": {"0": {"partitions": 6, "state_stores": 2}, "1": {"partitions": 12}},
        "members": {
            "m1": {
                "process": "p1",
                "tags": {"zone": "a"},
                "active": {"0": [0, 1, 2], "1": "0-5"},
                "standby": {"0": 3},
            },
            "m2": {"process": "p2", "tags": {"zone": "b"}, "active": {"0": [3, "4-5"], "1": "6, 8-9"}},
            "m3": None,
        },
        "lags": {"p2": {"0": {"0-1": 120, "2": 7}}},
        "ends": {"0": 250_000},
    }
    assert read_group(json.dumps(same, indent="\t"), "x.json") == read_group(FILE, "x.yaml")


def test_names_stay_as_they_are_written() -> None:
    group = read_group("subtopologies: {007: {partitions: 1}}\nmembers: {no: {process: 1e3}, 12: {}, ~: {}}", "x")
    assert [(member.id, member.process) for member in group.members] == [("no", "1e3"), ("12", "12"), ("~", "~")]
    assert group.subtopologies[0].id == "007"


@given(st.sets(st.integers(0, 60)))
def test_partitions_are_written_as_ranges_and_read_again(numbers: set[int]) -> None:
    group = Group((SubtopologyTasks("s", 61),), (Member("m", "m", active=frozenset(TaskId("s", n) for n in numbers)),))
    assert read_group(group_as_yaml(group), "x") == group


# mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.yaml: it is empty; a group has at least subtopologies and members"),
        ("# nothing\n", "x.yaml: it is empty; a group has at least subtopologies and members"),
        ("members: {}", "x.yaml, line 1: subtopologies are missing"),
        ("subtopologies: {}", "x.yaml, line 1: members are missing"),
        ("[1, 2]", "x.yaml, line 1: a mapping is needed here (a group), not a list"),
        ("group", "x.yaml, line 1: a mapping is needed here (a group), not group"),
        (
            with_("acceptable_lag", "aceptable_lag"),
            "x.yaml, line 3, aceptable_lag: there is no key 'aceptable_lag'; did you mean acceptable_lag?",
        ),
        (
            with_("partitions: 6, ", ""),
            "x.yaml, line 5, subtopologies.0: partitions are missing: how many tasks has it?",
        ),
        (
            with_("partitions: 6", "partitions: six"),
            "x.yaml, line 5, subtopologies.0.partitions: a whole number of at least 0 is needed here, not six",
        ),
        (
            with_("partitions: 6", "partitions: 6.5"),
            "x.yaml, line 5, subtopologies.0.partitions: a whole number of at least 0 is needed here, not 6.5",
        ),
        (
            with_("partitions: 6", "partitions: -6"),
            "x.yaml, line 5, subtopologies.0.partitions: a whole number of at least 0 is needed here, not -6",
        ),
        (
            with_("partitions: 6", "partitions: [6]"),
            "x.yaml, line 5, subtopologies.0.partitions: a whole number of at least 0 is needed here, not a list",
        ),
        (
            with_("partitions: 6", "partitions: 5"),
            "x.yaml, line 9, members.m2.active.0[1]: subtopology 0 has no partition 5: they are 0-4",
        ),
        (
            with_('"0": 0-2', '"2": 0-2'),
            "x.yaml, line 8, members.m1.active.2: there is no subtopology '2'; known are 0, 1",
        ),
        (
            with_("0-2", "2-0"),
            "x.yaml, line 8, members.m1.active.0: 2-0 ends before it begins",
        ),
        (
            with_("0-2", "0..2"),
            "x.yaml, line 8, members.m1.active.0: 0..2 is neither a partition nor a range of them, such as 0-3",
        ),
        (
            with_("0-2", "0-2 2"),
            "x.yaml, line 8, members.m1.active.0: 0-2 2 is neither a partition nor a range of them, such as 0-3",
        ),
        (
            with_("0-2", "{0: 1}"),
            "x.yaml, line 8, members.m1.active.0: partitions are a list, or ranges such as 0-3, 7",
        ),
        (with_("[3, 4-5]", "[3, 3]"), "x.yaml, line 9, members.m2.active.0[1]: partition 3 stands here twice"),
        (
            with_("[3, 4-5]", "2-5"),
            "x.yaml, line 9, members.m2.active.0: partition 2 is active at m1 as well; one has to have it",
        ),
        (with_("m2:", "m1:"), "x.yaml, line 9: 'm1' stands here twice; one of them is too many"),
        (with_("{zone: b}", "b"), "x.yaml, line 9, members.m2.tags: a mapping is needed here (tags), not b"),
        (with_("zone: b", "zone: [b]"), "x.yaml, line 9, members.m2.tags.zone: a text is needed here, not a list"),
        (with_("  p2:", "  p9:"), "x.yaml, line 12, lags.p9: there is no process 'p9'; known are m3, p1, p2"),
        (
            with_("0-1: 120", "0-2: 120"),
            "x.yaml, line 12, lags.p2.0.2: partition 2 stands here twice",
        ),
        (
            with_("120", "12h"),
            "x.yaml, line 12, lags.p2.0.0-1: a whole number of at least 0 is needed here, not 12h",
        ),
        (with_("  m3:", "  '':"), "x.yaml, line 10, members.: the name of this is empty"),
        (with_("m3:", "m3: &a"), "x.yaml, line 10: &a: anchors aren't supported; leave it out"),
        (with_("m3:", "m3: *a"), "x.yaml, line 10: *a: aliases aren't supported; write it out"),
        (with_("m3:", "m3: !!python/name:os.system"), "aren't supported; leave it out"),
        (with_("m3:", "? [m3]\n  :"), "x.yaml, line 10: a key is a name, not a list or a mapping"),
        (FILE + "---\n" + FILE, "x.yaml, line 15: a second document begins here; one is wanted"),
    ],
)
def test_what_is_said_about_a_mistake(text: str, said: str) -> None:
    found = mistake(text)
    assert found == said or (said.startswith("aren't") and found.endswith(said))


@pytest.mark.parametrize("text", [with_("[zone]", "[zone"), with_("standbys: 1", "standbys: 1\n\t"), "a: b: c", "\x00"])
def test_what_is_not_yaml(text: str) -> None:
    assert "not YAML: " in mistake(text)


def test_json_mistakes_are_pointed_at_too() -> None:
    good = '{"subtopologies": {"0": {"partitions": 1}}, "members": {"m1": {"active": {"0": %s}}}}'
    assert mistake(good % "[1]", "x.json") == (
        "x.json, members.m1.active.0[0]: subtopology 0 has no partition 1: they are 0-0"
    )
    assert mistake(good % "[", "x.json").startswith("x.json, line 1, column ")
    assert mistake(good % "NaN", "x.json") == "x.json: NaN isn't a number that can be used here"
    assert mistake('{"members": {"a": {}, "a": {}}}', "x.json").startswith("x.json: 'a' stands here twice")


def test_hostile_files_cost_little() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n"
    assert "anchors aren't supported" in mistake(bomb)
    assert "nested too deeply" in mistake("[" * 100_000)
    assert "nested too deeply" in mistake('{"a":' * 100_000, "x.json")
    assert "nested too deeply" in mistake("{a: " * 5000)
    assert "too large" in mistake(with_("partitions: 6", "partitions: 99999999999999999999999"))
    assert "is needed here" in mistake(with_("partitions: 6", f"partitions: {'9' * 5000}"))
    digits = '{"members": {}, "subtopologies": {"0": {"partitions": ' + "9" * 5000 + "}}}"
    assert "is needed here" in mistake(digits, "x.json")
    assert "neither a partition" in mistake(with_("0-2", f"0-{'9' * 5000}"))


def test_there_is_a_most_of_tasks_and_of_naming_them(monkeypatch: pytest.MonkeyPatch) -> None:
    half = MOST_TASKS // 2 + 1
    assert "more than 1,000,000 tasks in all" in mistake(
        f"subtopologies: {{a: {{partitions: {half}}}, b: {{partitions: {half}}}}}\nmembers: {{}}"
    )
    monkeypatch.setattr(group_file, "MOST_MENTIONS", 25)  # as often as FILE does
    read_group(FILE, "x.yaml")
    assert "names tasks more than 25 times" in mistake(with_("ends:", "ends:\n  '1': 5"))
    assert "names tasks more than 25 times" in mistake(with_("m3:", "m3: {standby: {'0': 1}}"))


@given(st.text())
def test_any_text_is_a_group_or_a_mistake(text: str) -> None:
    for file in ("x.yaml", "x.json"):
        try:
            read_group(text, file)
        except DocumentError as error:
            assert str(error).startswith(file)


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("0-3"))
keys = st.sampled_from(["0", "m1", "partitions", "active", "standby", "tags", "process", "lags", "ends", "0-1", ""])
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["subtopologies", "members", "lags", "ends", "standbys", "rack_tags"]), trees))
def test_any_tree_is_a_group_or_a_mistake(tree: dict[str, object]) -> None:
    try:
        read_group(json.dumps(tree), "x.json")
    except DocumentError as error:
        assert str(error).startswith("x.json")


# what is written reads back

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.sampled_from(
    [
        "no",
        "~",
        "null",
        "010",
        "1e3",
        "- a",
        "<<",
        "*a",
        "&a",
        "!x",
        "a: b",
        "#",
        "{",
        "'",
        '"',
        "=",
        "0x1F",
        "12:30:45",
    ]
)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Any group that a file can hold: each task active at one member at most, lags of processes that are there."""
    ids = draw(st.lists(names, max_size=3, unique=True))
    parts = tuple(SubtopologyTasks(name, draw(st.integers(0, 5)), draw(st.integers(0, 3))) for name in ids)
    every = [TaskId(part.id, number) for part in parts for number in range(part.partitions)]
    some = st.frozensets(st.sampled_from(every)) if every else st.just(frozenset())
    owners = draw(st.lists(names, max_size=4, unique=True))
    taken: set[TaskId] = set()
    members = []
    for owner in owners:
        active = draw(some) - taken
        taken |= active
        tags = draw(st.dictionaries(names, names, max_size=2))
        members.append(Member(owner, draw(names | st.just(owner)), tags, active, draw(some)))
    processes = sorted({member.process for member in members})
    copies = st.tuples(st.sampled_from(processes), st.sampled_from(every)) if processes and every else st.nothing()
    records = st.integers(0, 2**63 - 1)
    return Group(
        parts,
        tuple(members),
        standbys=draw(st.integers(0, 5)),
        rack_tags=tuple(draw(st.lists(names, max_size=2, unique=True))),
        lags=draw(st.dictionaries(copies, records, max_size=5)) if processes and every else {},
        ends=draw(st.dictionaries(st.sampled_from(every), records, max_size=5)) if every else {},
        acceptable_lag=draw(records),
    )


@given(groups())
def test_what_is_written_reads_back(group: Group) -> None:
    assert read_group(group_as_yaml(group), "x.yaml") == group
    assert read_group(group_as_json(group), "x.json") == group


def test_what_is_written_can_be_read_by_people() -> None:
    group = read_group(FILE, "x.yaml")
    text = group_as_yaml(replace(group, ends={}))
    assert "active: {'0': 0-2, '1': 0-5}" in text
    assert "'0': {0-1: 120, '2': 7}" in text
    assert "m3: {}" in text
