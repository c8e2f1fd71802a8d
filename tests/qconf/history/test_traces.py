"""Real traces, against counts by other means and against the jobs that an independent simulator was given."""

import gzip

import pandas as pd
import pytest

from qconf.history import clean, derive_config, read

TRACES = [
    ("SDSC-SP2-1998-4.2-cln", "SDSC-SP2", 128, 59715, 54034, None),
    ("KTH-SP2-1996-2.1-cln", "KTH-SP2", 100, 27992, 27992, None),
    ("HPC2N-2002-2.1-cln", "HPC2N", 240, 202876, 202876, 60000),
]


@pytest.mark.parametrize(("trace", "reference", "cores", "lines", "jobs", "first"), TRACES)
def test_cleaned_jobs_equal_the_reference(shared, trace, reference, cores, lines, jobs, first):
    records = read(shared(f"traces/{trace}.swf.gz"))
    expected = pd.read_csv(shared(f"reference/{reference}_easy.csv.gz"), dtype={"job_id": "str"})
    history = clean(records, derive_config(records, cores))

    assert records.read == lines
    assert records.machine_cores == cores
    assert len(history) == jobs
    assert len(history) + len(history.dropped) == history.read == lines
    for column in ("job_id", "submit", "cores", "runtime", "walltime"):
        assert history.jobs[column].iloc[:first].tolist() == expected[column].tolist()


@pytest.mark.parametrize("trace", ["SDSC-SP2-1998-4.2-cln", "KTH-SP2-1996-2.1-cln", "NASA-iPSC-1993-3.1-cln"])
def test_rows_are_the_fields_of_their_lines(shared, trace):
    path = shared(f"traces/{trace}.swf.gz")
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    table = read(path).table

    rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    assert [str(int(row[0])) for row in rows] == table["job_id"].tolist()
    assert [int(row[1]) for row in rows] == table["submit"].tolist()
    assert [int(row[3]) for row in rows] == table["runtime"].tolist()
    assert [int(row[4]) if int(row[4]) > 0 else int(row[7]) for row in rows] == table["cores"].tolist()
    assert all(lines[n - 1].split()[0] == job for n, job in zip(table["line"], table["job_id"], strict=True))


def test_synthetic_trace_without_epoch_or_queue(shared):
    records = read(shared("traces/lublin_256.swf"))
    assert (records.read, records.epoch, records.machine_cores) == (10000, 0, 256)
