"""Clusters by name: `kohort clusters`, `--cluster`, and which cluster counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from kohort.cli.client.options import client_settings, is_named
from kohort.cli.client.profiles import named_by_option, with_default
from tests.cli.administering import Cluster, cluster, rows
from tests.cli.support import invoke

FILE = """\
# mine
default = "dev"  # for now

[dev]
bootstrap.servers = "dev.example:9092"

[prod]
bootstrap.servers = "prod.example:9093"
security.protocol = "SASL_SSL"
sasl.mechanism = "SCRAM-SHA-512"
sasl.username = "me"
sasl.password = "geheim"
linger.ms = 7
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kohort" / "clusters.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    path.chmod(0o600)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return path


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "here")
        yield found


def test_clusters_are_listed_and_shown_without_passwords(file: Path) -> None:
    assert rows(invoke("clusters", "list").stdout)[1:] == [
        ["dev", "dev.example:9092", "PLAINTEXT", "default"],
        ["prod", "prod.example:9093", "SASL_SSL"],
    ]
    listed = json.loads(invoke("clusters", "list", "--json").stdout)
    assert [(each["name"], each["default"]) for each in listed] == [("dev", True), ("prod", False)]
    for shown in (invoke("clusters", "show", "prod"), invoke("clusters", "show", "prod", "--json")):
        assert "geheim" not in shown.stdout and "(hidden)" in shown.stdout and "SCRAM-SHA-512" in shown.stdout
    assert json.loads(invoke("clusters", "show", "prod", "--json").stdout)["settings"]["linger.ms"] == "7"
    failed = invoke("clusters", "show", "prd")
    assert failed.exit_code == 2 and "did you mean prod?" in " ".join(failed.stderr.split())


def test_without_a_file_there_are_none() -> None:
    done = invoke("clusters", "list", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    assert "no clusters yet" in invoke("clusters", "list").stderr


def test_a_file_with_passwords_that_others_may_read_is_told(file: Path) -> None:
    assert not invoke("clusters", "list").stderr
    file.chmod(0o640)
    assert "others may read" in invoke("clusters", "list").stderr
    file.write_text('[dev]\nbootstrap.servers = "dev.example:9092"\n')
    assert not invoke("clusters", "list").stderr


def test_that_is_told_once_a_command(file: Path, at: Cluster) -> None:
    file.write_text(f'[here]\nbootstrap.servers = "{at.servers}"\nssl.key.password = "x"\n')
    file.chmod(0o644)
    for _ in range(2):
        done = invoke("topics", "delete", "nothing", "--if-exists", "-c", "here")
        assert done.stderr.count("others may read") == 1, done.stderr
    done = invoke("perf", "produce", "here", "--records", "1", "-c", "here")
    assert (done.exit_code, done.stderr.count("others may read")) == (0, 1), done.stderr


def test_the_default_is_changed_and_all_else_stays(file: Path) -> None:
    assert "the default cluster is prod" in invoke("clusters", "default", "prod").stdout
    assert file.read_text() == FILE.replace('default = "dev"', 'default = "prod"')
    assert file.stat().st_mode & 0o777 == 0o600
    assert invoke("clusters", "default", "--none").exit_code == 0
    assert "default" not in file.read_text() and file.read_text().startswith("# mine\n\n[dev]")
    assert invoke("clusters", "default", "nobody").exit_code == 2
    assert invoke("clusters", "default").exit_code == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"default" = "dev" # x\n[dev]\n[prod]\n', '"default" = "prod" # x\n[dev]\n[prod]\n'),
        ("  'default'='dev'\n[dev]\n[prod]\n", "  'default'=\"prod\"\n[dev]\n[prod]\n"),
        ('"d\\u0065fault" = "dev"\n[dev]\n[prod]\n', None),
    ],
)
def test_a_default_may_be_written_in_many_ways(file: Path, before: str, after: str | None) -> None:
    """What isn't understood is left as it is, rather than broken."""
    file.write_text(before)
    done = invoke("clusters", "default", "prod")
    assert (done.exit_code, file.read_text()) == ((0, after) if after else (1, before)), done.stderr
    assert bool(after) or "change it in the file yourself" in " ".join(done.stderr.split())


@pytest.mark.parametrize(("variable", "value"), [("KOHORT_CLUSTER", "prod"), ("KOHORT_BOOTSTRAP_SERVERS", "x:1")])
def test_the_default_is_that_of_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = invoke("clusters", "list", "--json")
    assert {each["name"]: each["default"] for each in json.loads(done.stdout)} == {"dev": True, "prod": False}
    assert f"{variable} is set, and goes before the default: {value}" in done.stderr
    assert json.loads(invoke("clusters", "show", "dev", "--json").stdout)["default"]


@pytest.mark.parametrize("error", [PermissionError, NotADirectoryError])
def test_a_file_out_of_reach_is_missed_only_where_a_cluster_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    def refuse(*_: object) -> None:
        raise error(1, "out of reach")

    monkeypatch.setattr(Path, "open", refuse)
    assert client_settings(None, None)[0].addresses == (("localhost", 9092),) and not is_named(None, None)
    monkeypatch.setenv("KOHORT_CLUSTER", "prod")
    assert "out of reach" in invoke("topics", "list").stderr


def test_the_file_is_not_read_if_it_does_not_count(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[broken")
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVERS", "env.example:1")
    assert client_settings(None, None)[0].addresses == (("env.example", 1),) and is_named(None, None)


def test_a_user_without_a_home_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert client_settings(None, None)[0].addresses == (("localhost", 9092),)


def test_a_default_goes_before_the_first_table() -> None:
    assert with_default('[a]\ndefault = "x"\n', "a") == 'default = "a"\n\n[a]\ndefault = "x"\n'
    assert with_default("", "a") == 'default = "a"\n'


@pytest.mark.parametrize(
    ("option", "bootstrap", "environment", "expected"),
    [
        (None, None, {}, "dev.example"),
        (None, None, {"KOHORT_BOOTSTRAP_SERVERS": "env.example:1"}, "env.example"),
        (None, None, {"KOHORT_BOOTSTRAP_SERVERS": "env.example:1", "KOHORT_CLUSTER": "prod"}, "prod.example"),
        ("dev", None, {"KOHORT_CLUSTER": "prod"}, "dev.example"),
        (None, "given.example:1", {"KOHORT_CLUSTER": "prod"}, "given.example"),
        ("prod", "given.example:1", {}, "given.example"),
    ],
)
def test_which_cluster_counts(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    bootstrap: str | None,
    environment: dict[str, str],
    expected: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    token = named_by_option.set(option)
    try:
        found, others = client_settings(bootstrap, None)
    finally:
        named_by_option.reset(token)
    assert found.addresses[0][0] == expected
    secured = option == "prod" or expected == "prod.example"
    assert found.sasl_password == ("geheim" if secured else None)  # it goes nowhere but where somebody sent it
    assert others == ({"linger.ms": "7"} if secured else {})


def test_a_file_of_settings_goes_before_the_profile(file: Path, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("sasl.password=other\n")
    token = named_by_option.set("prod")
    try:
        found, _ = client_settings(None, str(settings))
    finally:
        named_by_option.reset(token)
    assert (found.sasl_username, found.sasl_password) == ("me", "other")


def test_a_table_may_name_a_file(file: Path) -> None:
    (file.parent / "far.properties").write_text("bootstrap.servers=far.example:1\nclient.id=theirs\n")
    file.write_text('[far]\nconfig = "far.properties"\nclient.id = "mine"\n')
    token = named_by_option.set("far")
    try:
        found, _ = client_settings(None, None)
    finally:
        named_by_option.reset(token)
    assert (found.addresses[0][0], found.client_id) == ("far.example", "mine")


def test_commands_take_the_option(file: Path, at: Cluster) -> None:
    file.write_text(f'[here]\nbootstrap.servers = "{at.servers}"\n')
    for option in ("--cluster", "-c"):
        done = invoke("topics", "list", "--json", option, "here")
        assert [each["name"] for each in json.loads(done.stdout)] == ["here"], done.stderr
    assert invoke("cluster", "--json", "-c", "here").exit_code == 0
    failed = invoke("topics", "list", "-c", "her")
    assert failed.exit_code == 2 and "did you mean here?" in " ".join(failed.stderr.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[dev\n", "no TOML"),
        ('bootstrap.servers = "x:1"\n', "is in no table"),
        ('default = "nobody"\n', "there is no such cluster in it"),
        ('[dev]\nbootstrap.servers = ["a:1"]\n', "a text, a number, true or false is wanted"),
        ('[dev]\nbootstrap.server = "a:1"\n', "unknown key 'bootstrap.server'"),
        ("[dev]\n", "bootstrap.servers is missing"),
        ("['a b']\n", "a name of letters"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_place(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    done = invoke("topics", "list", "-c", "dev")
    assert done.exit_code == 2
    message = " ".join(done.stderr.split())
    assert said in message and "clusters.toml" in message, message


def test_options_are_those_of_the_call_alone(file: Path) -> None:
    invoke("topics", "list", "-c", "nobody")
    invoke("topics", "list", "-b", "127.0.0.1:1", "--timeout", "0.1")
    assert named_by_option.get() is None
    with pytest.raises(typer.Exit):
        client_settings("", None)
