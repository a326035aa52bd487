"""The data directory: checkpoints, the lock, and clean shutdown."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from kohort.log import DataDirectory, Log, LogConfig
from kohort.log.data_directory import DirectoryInUseError, PartitionName, read_topic_id, uuid_text, write_topic_id
from tests.log.batches import NOW, batch, records_of

CONFIG = LogConfig(segment_bytes=130)
ONE, TWO = PartitionName("one", 0), PartitionName("a-b.c", 12)


def opened(data: DataDirectory, *names: PartitionName) -> dict[PartitionName, Log]:
    return {name: data.open_log(name, CONFIG, now=NOW) for name in names}


def test_names() -> None:
    assert str(TWO) == "a-b.c-12"
    assert PartitionName.parse("a-b.c-12") == TWO
    for name in ("", "a", "-1", "a-", "a-b", "a--", "a-1.deadbeef-delete"):
        assert PartitionName.parse(name) is None


def test_a_clean_shutdown(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert not data.clean
    logs = opened(data, ONE, TWO)
    for _ in range(5):
        logs[ONE].append(batch(2), now=NOW)
    logs[ONE].delete_records(4)
    logs[TWO].append(batch(), now=NOW)
    data.close(logs)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\na-b.c 12 1\none 0 10\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\none 0 4\n"
    data = DataDirectory(tmp_path)
    assert data.clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert set(data.partitions()) == {ONE, TWO}
    logs = opened(data, ONE, TWO)
    assert (logs[ONE].log_start_offset, logs[ONE].log_end_offset, logs[ONE].flushed_offset) == (4, 10, 10)
    data.close(logs)


def test_a_crash(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE)
    for _ in range(5):
        logs[ONE].append(batch(2), now=NOW)
    logs[ONE].flush()
    logs[ONE].delete_records(5)
    data.checkpoint(logs)
    logs[ONE].append(batch(2), now=NOW)
    data._unlock()
    data = DataDirectory(tmp_path)
    assert not data.clean
    log = opened(data, ONE)[ONE]
    assert (log.log_start_offset, log.log_end_offset, log.flushed_offset) == (5, 12, 10)


def test_a_log_that_fails_makes_no_clean_shutdown(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE, TWO)
    logs[ONE].append(batch(), now=NOW)
    logs[ONE].offline = "the disk is gone"
    data.close(logs)
    assert not DataDirectory(tmp_path).clean


def test_a_new_partition_inherits_nothing_from_one_of_its_name(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE)
    for _ in range(5):
        logs[ONE].append(batch(2), now=NOW)
    logs[ONE].delete_records(9)
    data.checkpoint(logs)
    logs[ONE].delete()
    log = data.open_log(ONE, CONFIG, now=NOW)
    log.append(batch(), now=NOW)
    data._unlock()
    log = opened(DataDirectory(tmp_path), ONE)[ONE]
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)
    assert len(records_of(log)) == 1


def test_half_deleted_partitions_are_removed(tmp_path: Path) -> None:
    (tmp_path / "one-0.0123456789abcdef-delete").mkdir()
    data = DataDirectory(tmp_path)
    assert list(data.partitions()) == []
    assert not list(tmp_path.glob("*-delete"))


def test_only_one_server_has_it(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    script = (
        "import sys; from pathlib import Path; from kohort.log import DataDirectory; DataDirectory(Path(sys.argv[1]))"
    )
    other = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert "another server uses this data directory" in other.stderr
    assert DirectoryInUseError.__name__ in other.stderr
    data.close({})
    again = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert again.returncode == 0


@pytest.mark.parametrize("content", ["", "1\n0\n", "0\n2\none 0 5\n", "0\n1\none 0\n", "0\n1\none x 5\n", "\xff"])
def test_damaged_checkpoints_are_ignored(tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE)
    logs[ONE].append(batch(), now=NOW)
    data.close(logs)
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(content.encode("latin-1"))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    data = DataDirectory(tmp_path)
    assert "ignored" in caplog.text
    assert opened(data, ONE)[ONE].log_end_offset == 1


def test_properties(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.properties() is None
    data.write_properties({"version": "1", "cluster.id": "abc", "node.id": "1"})
    assert data.properties() == {"version": "1", "cluster.id": "abc", "node.id": "1"}
    (tmp_path / "meta.properties").write_text("#\n#Sat Nov 21\nnode.id=1\ndirectory.id=x\\=y\n")
    assert data.properties() == {"node.id": "1", "directory.id": "x=y"}


def test_topic_ids(tmp_path: Path) -> None:
    topic_id = uuid.UUID("6d67268c-5f4a-455c-a3c7-52339102e324")
    assert read_topic_id(tmp_path) is None
    write_topic_id(tmp_path, topic_id)
    assert (tmp_path / "partition.metadata").read_text() == f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    assert uuid_text(topic_id) == "bWcmjF9KRVyjx1IzkQLjJA"
    assert read_topic_id(tmp_path) == topic_id
    (tmp_path / "partition.metadata").write_text("version: 0\n")
    assert read_topic_id(tmp_path) is None


def test_what_nobody_recovered_is_not_clean(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    opened(data, ONE)[ONE].append(batch(), now=NOW)
    data._unlock()
    DataDirectory(tmp_path).close({})
    assert not DataDirectory(tmp_path).clean


def test_only_one_broker_of_a_process_has_it(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    with pytest.raises(DirectoryInUseError, match="another server"):
        DataDirectory(tmp_path)
    script = (
        "import sys; from pathlib import Path; from kohort.log import DataDirectory; DataDirectory(Path(sys.argv[1]))"
    )
    other = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert DirectoryInUseError.__name__ in other.stderr  # the attempt has unlocked nothing
    data.close({})
    DataDirectory(tmp_path).close({})


def test_a_log_that_could_not_be_opened_keeps_its_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE)
    for _ in range(5):
        logs[ONE].append(batch(), now=NOW)
    logs[ONE].delete_records(4)
    data.close(logs)
    data = DataDirectory(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("kohort.log.log.load", _fails)
        logs = opened(data, ONE)
    assert logs[ONE].offline is not None
    data.close(logs)
    data = DataDirectory(tmp_path)
    assert opened(data, ONE)[ONE].log_start_offset == 4


def _fails(*_: object, **__: object) -> None:
    raise OSError("the disk is gone")


def test_a_topic_made_again_is_checkpointed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataDirectory(tmp_path)
    logs = opened(data, ONE, TWO)
    for log in logs.values():
        log.append(batch(), now=NOW)
        log.flush()
    data.checkpoint(logs)
    for log in logs.values():
        log.delete()
    written: list[Path] = []
    monkeypatch.setattr("kohort.log.data_directory.write_atomically", lambda path, _: written.append(path))
    opened(data, ONE, TWO)
    assert len(written) == 3


def test_a_full_disk_forbids_no_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be noted now is noted with the next checkpoint."""
    data = DataDirectory(tmp_path)
    log = opened(data, ONE)[ONE]
    log.append(batch(), now=NOW)
    data.checkpoint({ONE: log})
    log.flush()
    data.checkpoint({ONE: log})
    log.delete()
    monkeypatch.setattr("kohort.log.data_directory.write_atomically", _fails)
    assert opened(data, ONE)[ONE].log_end_offset == 0
