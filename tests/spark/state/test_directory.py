from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from kohort.spark.state import StateDirectory, StateDirectoryError, StateError, StoreClosedError
from kohort.streams.tasks import TaskId

A, B = TaskId("0", 3), TaskId("1", 0)


def test_tasks_on_disk_and_the_process_id(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "app") as directory:
        first = uuid.UUID(directory.process_id)
        assert directory.tasks_on_disk() == {}
        delays = directory.open_store(A, "delays")
        delays.write(pa.array([b"k"]), pa.array([b"v"]), 17)
        directory.open_store(B, "odd/.. name")
        directory.open_global("airlines").write(pa.array([b"k"]), pa.array([b"v"]), 1, 0)
        assert directory.tasks_on_disk() == {A: {"delays": 17}, B: {"odd/.. name": None}}
    with pytest.raises(StoreClosedError):
        delays.scan()
    with StateDirectory(tmp_path, "app") as directory:
        assert uuid.UUID(directory.process_id) == first
        assert directory.tasks_on_disk() == {A: {"delays": 17}, B: {"odd/.. name": None}}
        delays = directory.open_store(A, "delays")
        assert delays.get_many(pa.array([b"k"])).to_pylist() == [b"v"]
        assert not directory.remove(A)
        delays.close()
        assert directory.remove(A)
        assert directory.tasks_on_disk() == {B: {"odd/.. name": None}}
        assert dict(directory.open_global("airlines").positions) == {0: 1}
    with StateDirectory(tmp_path, "other") as directory:
        assert uuid.UUID(directory.process_id) != first


def test_stores_move_to_where_a_changed_program_looks_for_them(tmp_path: Path) -> None:
    """Sub-topologies may swap their numbers; what is there already stays, and so does what nobody looks for."""
    c, d = TaskId("1", 3), TaskId("0", 0)
    places = [(A, "delays", 17), (c, "skies", 5), (A, "old", 3), (B, "delays", 1), (d, "delays", 9)]
    with StateDirectory(tmp_path, "app") as directory:
        for task, name, at in places:
            directory.open_store(task, name).write(pa.array([b"k"]), pa.array([b"v"]), at)
    with StateDirectory(tmp_path, "app") as directory:
        for _ in range(2):
            directory.move_stores({"delays": "1", "skies": "0"})
            assert directory.tasks_on_disk() == {
                c: {"delays": 17}, A: {"skies": 5, "old": 3}, B: {"delays": 1}, d: {"delays": 9},
            }  # fmt: skip


def test_a_store_is_open_once(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "app") as directory:
        store = directory.open_store(A, "delays")
        with pytest.raises(StateError, match="open already"):
            directory.open_store(A, "delays")
        store.close()
        directory.open_store(A, "delays")
    with pytest.raises(StateError, match="is closed"):
        directory.open_store(A, "delays")
    directory.close()


def test_a_second_process_gets_an_error(tmp_path: Path) -> None:
    code = (
        "import sys, os; from kohort.spark.state import StateDirectory;"
        "d = StateDirectory(sys.argv[1], 'app'); print('ready', flush=True); sys.stdin.read(); os._exit(1)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    with pytest.raises(StateDirectoryError, match=rf"another process \({child.pid}\); give each instance"):
        StateDirectory(tmp_path, "app")
    StateDirectory(tmp_path, "another").close()
    child.kill()  # a lock ends with its process, however that ends
    child.wait()
    child.stdin.close()
    child.stdout.close()
    StateDirectory(tmp_path, "app").close()


@pytest.mark.parametrize(
    "about", ["nonsense", "", '{"format": 0, "process_id": "7a5fd4a9-5a0b-4ed6-9f0e-b43d6c3b2a4f"}']
)
def test_stores_of_another_format_are_removed(tmp_path: Path, about: str, caplog: pytest.LogCaptureFixture) -> None:
    with StateDirectory(tmp_path, "app") as directory:
        directory.open_store(A, "delays").write(pa.array([b"k"]), pa.array([b"v"]), 17)
        about_file = directory.path / "state.json"
    about_file.write_text(about)
    with StateDirectory(tmp_path, "app") as directory:
        assert directory.tasks_on_disk() == {}
        if about.startswith("{"):
            assert directory.process_id == json.loads(about)["process_id"]
        assert json.loads(about_file.read_text()) == {"format": 1, "process_id": directory.process_id}
    assert "its stores are removed, to be restored" in caplog.text


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateDirectoryError, match="name another with state_dir"):
        StateDirectory(tmp_path / "file", "app")


def test_opening_and_closing_is_quick(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "app") as directory:
        began = time.process_time()
        stores = [directory.open_store(TaskId("0", number), "s") for number in range(20)]
        for store in stores:
            store.close()
        assert (time.process_time() - began) / 20 < 0.05
