"""Finished work is kept, given back as it was, and refused where it is of other inputs; one run at a time."""

from __future__ import annotations

import errno
import fcntl
import os

import numpy as np
import pytest

from qconf.errors import InputError, QconfError
from qconf.evaluation.period import NotApplicableError, UnroutableError
from qconf.recommend import lock
from qconf.recommend.checkpoint import FOLDER, Checkpoint, fingerprint, unfinished, versions
from qconf.recommend.lock import exclusive
from qconf.strategies import Proposal
from tests.qconf.small import two


def about(**changes):
    return fingerprint([], two(), {"samples": 20, "workers": 2}, span=(0, 9), timezone="UTC", **changes)


def kept(folder):
    return Checkpoint(folder, about(), resume=True)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_numbers_come_back_to_the_last_bit(tmp_path):
    numbers = np.array([[0.1, np.nan], [1 / 3, 1e300]])
    kept(tmp_path).put("auto-fitted order", numbers)
    np.testing.assert_array_equal(numbers, kept(tmp_path).get("auto-fitted order"))


@pytest.mark.parametrize("kind", [NotApplicableError, UnroutableError])
def test_why_there_is_no_proposal_is_kept_too(tmp_path, kind):
    kept(tmp_path).put("exact-whole", kind("a queue has no job"))
    found = kept(tmp_path).get("exact-whole")
    assert (type(found), str(found)) == (kind, "a queue has no job")


def test_names_of_work_are_names_of_files(tmp_path):
    keys = ("a/b", "a%2Fb", "..", "x" * 90)
    checkpoint = kept(tmp_path)
    for number, key in enumerate(keys):
        checkpoint.put(key, np.array([float(number)]))
    assert [checkpoint.get(key).item() for key in keys] == [0, 1, 2, 3]
    checkpoint.put("pp-whole", {"": Proposal(two())})
    assert checkpoint.get("pp-whole")[""].config == two()
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path / FOLDER}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"inputs": ["0"]}, "the log"),
        ({"config": "x"}, "the configuration"),
        ({"span": (1, 9)}, "the period"),
        ({"timezone": "Asia/Tokyo"}, "--timezone"),
        ({"settings": {"samples": 30, "seed": 1}}, "--samples, --seed"),
        ({"versions": versions() | {"qconf": "9"}}, "the version of qconf"),
        ({"versions": versions() | {"numpy": "9"}, "config": "x"}, "the configuration, the version of numpy"),
    ],
)
def test_work_of_other_inputs_is_named_and_left_alone(tmp_path, changes, named):
    Checkpoint(tmp_path, about(), resume=False).put("x", np.ones(1))
    there = contents(tmp_path)
    with pytest.raises(InputError, match=f"another run was interrupted here, which differs in {named}\\. Give what"):
        Checkpoint(tmp_path, about() | changes, resume=True)
    assert contents(tmp_path) == there
    assert "is deleted" in Checkpoint(tmp_path, about() | changes, resume=False).note
    assert not unfinished(tmp_path)


def test_work_of_which_nothing_is_known_is_left_alone(tmp_path):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "pp-whole.json").write_text("{}")
    with pytest.raises(InputError, match="differs in the version of qconf"):
        Checkpoint(tmp_path, about(), resume=True)
    assert Checkpoint(tmp_path / "other", about(), resume=True).note.startswith("no interrupted run has finished")


@pytest.mark.parametrize("text", ["", "{", '{"fingerprint": "other", "numbers": [1]}', "[]", "null"])
def test_damaged_work_is_done_again(tmp_path, text):
    checkpoint = Checkpoint(tmp_path, about(), resume=False)
    (tmp_path / FOLDER / "x.json").write_text(text)
    assert checkpoint.get("x") is None


def test_a_second_run_in_a_directory_is_refused_and_the_process_named(tmp_path):
    with exclusive(tmp_path / "out"):
        Checkpoint(tmp_path / "out", about(), resume=False)
        before = contents(tmp_path)
        with pytest.raises(InputError, match=rf"out: process {os.getpid()} on .* is writing a run here\. Wait for it"):
            exclusive(tmp_path / "out").__enter__()
        assert contents(tmp_path) == before
        exclusive(tmp_path / "elsewhere").__enter__()
    assert not (tmp_path / "out").exists()  # nothing came of it


def test_a_lock_that_a_killed_run_left_is_taken(tmp_path):
    (tmp_path / FOLDER / ".qconf.torn").mkdir(parents=True)
    (tmp_path / FOLDER / "lock").write_text("process 1 on elsewhere\n")
    with exclusive(tmp_path):
        assert not (tmp_path / FOLDER / ".qconf.torn").exists()
    assert not (tmp_path / FOLDER).exists()


def test_a_lock_that_its_holder_deletes_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def late(handle, how):
        if not calls:
            (tmp_path / FOLDER / "lock").unlink()
        calls.append(how)
        return flock(handle, how)

    monkeypatch.setattr(lock.fcntl, "flock", late)
    with exclusive(tmp_path):
        assert len(calls) == 2
        with pytest.raises(InputError, match="is writing a run here"):
            exclusive(tmp_path).__enter__()


def test_a_file_system_without_locks_has_none(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", none)
    with exclusive(tmp_path / "out"):
        Checkpoint(tmp_path / "out", about(), resume=False)


def test_links_where_a_run_keeps_its_own_files_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FOLDER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"\.unfinished: is a symbolic link"):
        exclusive(tmp_path / "out").__enter__()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_directory_that_cannot_be_made_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(QconfError, match="run: cannot be written: Not a directory"):
        exclusive(tmp_path / "file" / "run").__enter__()
