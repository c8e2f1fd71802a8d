"""Formats recognised by content, many files, folders, and what is no history."""

import os
import shutil

import pytest

from qconf.errors import InputError
from qconf.history import clean, derive_config, read

SWF = "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 3 -1 -1 -1\n"
CSV = "job_id,submit,runtime,walltime,cores,queue\na,1000,60,100,4,small\n"
PBS = "11/20/2026 14:45:12;E;9.srv;user=u queue=q ctime=10 start=20 Resource_List.ncpus=4 end=30 x=1\n"
SACCT = "JobID|Submit|Start|End|Timelimit|AllocCPUS\n5|100|200|300|01:00:00|8\n"


@pytest.mark.parametrize("ending", ["", ".gz", ".txt"])
@pytest.mark.parametrize(("kind", "content"), [("swf", SWF), ("csv", CSV), ("pbs", PBS), ("sacct", SACCT)])
def test_the_format_is_recognised_by_the_content_whatever_the_name(write, kind, content, ending):
    records = read(write(content, "log" + ending))
    assert (records.format, len(records.table)) == (kind, 1)
    assert len(records.sources[0].sha256) == 64


@pytest.mark.parametrize("kind", ["swf", "csv", "pbs", "sacct"])
def test_other_content_under_a_forced_format_is_refused(write, kind):
    with pytest.raises(InputError):
        read(write("the quick brown fox\njumps\n"), format=kind)


def test_a_folder_is_its_files_by_name(write):
    write(CSV.replace("a,", "b,"), "days/2")
    write(CSV, "days/1")
    folder = write("junk", "days/.hidden").parent
    assert read(folder).table["job_id"].tolist() == ["a", "b"]


def test_a_folder_in_a_folder_is_named(write):
    write(PBS, "logs/old/1")
    records = read(write(PBS, "logs/2").parent)
    assert len(records.table) == 1
    assert records.dropped["detail"].str.contains("logs/old: is a folder in a folder. Name it, too").tolist() == [True]


@pytest.mark.parametrize("kind", ["tar", "gztar", "zip"])
def test_an_archive_is_refused(write, kind):
    folder = write(PBS * 2, "logs/1").parent
    with pytest.raises(InputError, match=r"is an archive of files \((tar|zip)\). Unpack it, and name the folder"):
        read(shutil.make_archive(str(folder), kind, folder))


def test_the_sum_of_files_is_the_sum_of_their_jobs(write):
    one, two = write(CSV, "1"), write(CSV.replace("a,1000", "b,500"), "2")
    records = read([one, two])
    assert (records.read, records.table["file"].tolist()) == (2, [0, 1])
    assert clean(records, derive_config(records, 8)).jobs["job_id"].tolist() == ["b", "a"]


def test_empty_files_among_others_are_days_without_jobs(write):
    assert read([write("", "1"), write(PBS, "2"), write("\n", "3")]).read == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": CSV, "b": CSV}, r"b: has the same content as .*a. Give each log once"),
        ({"a": CSV, "b": PBS}, r"b: is pbs, but .*a is csv"),
        ({"a": "", "b": "\n"}, r"a: the file is empty"),
        ({"a": "what is this\n"}, r"a, line 1: first line = 'what is this': not recognised"),
    ],
)
def test_what_is_refused(write, files, message):
    with pytest.raises(InputError, match=message):
        read([write(content, name) for name, content in files.items()])


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a log is read more than once"):
        read(tmp_path / "pipe")


def test_paths_that_are_none(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read(tmp_path / "missing")
    with pytest.raises(InputError, match="holds no file"):
        read(tmp_path)
    with pytest.raises(InputError, match="no file was given"):
        read([])
    with pytest.raises(InputError, match="format = 'xls': unknown format"):
        read(tmp_path, format="xls")
