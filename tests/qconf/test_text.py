"""Files whole or not at all."""

import errno
import os
import stat

import pytest

from qconf.errors import InputError, QconfError
from qconf.text import all_or_nothing, digests, refuse_overwrite, remove_unchanged, write_whole


def test_text_and_bytes_in_new_folders(tmp_path):
    write_whole(tmp_path / "a/b/c.txt", "é\n")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"\xc3\xa9\n"
    write_whole(tmp_path / "a/b/c.txt", b"new")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.txt"]


def test_permissions_are_those_of_the_file_before(tmp_path):
    path = tmp_path / "x"
    write_whole(path, "1")
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    write_whole(path, "2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(QconfError, match="cannot be written"):
        write_whole(tmp_path / "file/below", "y")
    with pytest.raises(QconfError, match="cannot be written"), all_or_nothing(tmp_path / "file/below"):
        pass


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_whole(tmp_path / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "x", "\ud800")
    assert (tmp_path / "x").read_text() == "old"


def test_a_folder_gets_all_or_nothing(tmp_path):
    write_whole(tmp_path / "run/keep", "1")
    with all_or_nothing(tmp_path / "run") as scratch:
        (scratch / "sub").mkdir()
        (scratch / "sub/a").write_text("a")
        (scratch / "b").write_text("b")
        assert not (tmp_path / "run/b").exists()
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "run/b",
        "run/keep",
        "run/sub/a",
    ]
    with pytest.raises(ZeroDivisionError), all_or_nothing(tmp_path / "run") as scratch:
        (scratch / "c").write_text(str(1 / 0))
    assert not (tmp_path / "run/c").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_folder_is_written_from_within_and_taken_away_if_nothing_came_of_it(tmp_path):
    target = tmp_path / "a" / "b"
    with all_or_nothing(target) as scratch:
        assert scratch.parent == target  # the folder above may be on another file system, or not writable
    assert not (tmp_path / "a").exists()
    target.mkdir(parents=True)
    with pytest.raises(ZeroDivisionError), all_or_nothing(target) as scratch:
        (scratch / "c").write_text(str(1 / 0))
    assert [*target.iterdir()] == []


def test_a_full_disk_is_one_message(tmp_path):
    with pytest.raises(QconfError, match="run: cannot be written: No space left"), all_or_nothing(tmp_path / "run"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not (tmp_path / "run").exists()


def test_inputs_are_not_overwritten_nor_files_in_folders_that_are_inputs(tmp_path):
    for name in ("a", "logs/b"):
        write_whole(tmp_path / name, "x")
    inputs = [tmp_path / "a", tmp_path / "logs", tmp_path / "missing"]
    refuse_overwrite(inputs, [tmp_path / "c", tmp_path / "logs" / "c"], "choose another name")
    for target in (tmp_path / "logs" / ".." / "a", tmp_path / "logs" / "b"):
        with pytest.raises(InputError, match=r"is an input, and would be overwritten\. Choose another name"):
            refuse_overwrite(inputs, [target], "choose another name")


def test_only_unchanged_files_are_removed(tmp_path):
    files = {"a": "1", "b": "2"}
    for name, text in files.items():
        write_whole(tmp_path / name, text)
    write_whole(tmp_path / "b", "changed")
    remove_unchanged(tmp_path, digests(files) | {"missing": ""})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
