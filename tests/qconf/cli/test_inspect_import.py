"""The commands inspect and import, from outside."""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from qconf.cli import main
from qconf.report import layout

SWF = "; MaxProcs: 64\n; UnixStartTime: 1454284800\n"
CSV = "job_id,submit,runtime,walltime,cores,queue,user\na,2016-02-01,1800,3600,4,small,ann\n"
CSV += "b,2016-02-02,0,60,4,small,bob\nc,2016-02-03,3600,3600,8,large,ann\n"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run commands in a folder with a log, h.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.csv").write_text(CSV)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


def swf(*jobs):
    return SWF + "".join(f"{i} {s} 0 60 {c} -1 -1 4 100 -1 1 7 1 -1 -1 -1 -1 -1\n" for i, (s, c) in enumerate(jobs))


def test_inspect_summarises_a_history(run, tmp_path):
    code, out, err = run("inspect", "h.csv", "--cores", 64, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert (result["read"], result["jobs"], result["dropped"]) == (3, 2, {"no run time": 1})
    assert result["users"] == 1
    assert result["cpu_hours"] == 10  # 4 cores for half an hour, 8 for an hour
    assert result["offered_load"] == round(36000 / (64 * 2 * 86400), 6)
    assert [(q["queue"], q["jobs"], q["cpu_hours"]) for q in result["queues"]] == [("small", 1, 2), ("large", 1, 8)]
    assert result["queues"][0]["walltime_accuracy"]["p50"] == 0.5
    assert result["first_submit"] == "2016-02-01T00:00:00+00:00"


def test_inspect_prints_tables(run, tmp_path):
    code, out, _ = run("inspect", "h.csv")
    assert code == 0
    assert "3 read = 2 jobs + 1 dropped" in out
    assert "size unknown (give --cores)" in out
    assert all(word in out for word in ("small", "large", "no run time"))


def test_inspect_reports_a_renamed_queue(run, tmp_path):
    (tmp_path / "h.csv").write_text(CSV.replace("large", "[x]"))
    out = run("inspect", "h.csv")[1]
    assert "1  queue name made legal: '[x]' is x" in out


def test_inspect_cuts_nothing_off_on_a_narrow_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "WIDTH", 40)
    _, out, _ = run("inspect", "h.csv")
    rows = [" ".join(line.split()) for line in out.splitlines() if line.startswith("large")]
    assert rows == ["large 1 1 8 80.0 8 8 8 8", "large 1:00:00 1:00:00 1:00:00 1.00"]


def test_a_log_without_a_usable_job_is_refused_with_the_reasons(run, tmp_path):
    (tmp_path / "h.csv").write_text(
        "job_id,submit,runtime,walltime,cores,queue\na,0,0,60,4,\nb,0,9,60,0,\nc,0,9,60,99,\n"
    )
    code, out, err = run("inspect", "h.csv", "--cores", 64)
    assert (code, out) == (1, "")
    assert "no usable job among 3 records" in err
    assert all(why in err for why in ("1 no run time", "1 no cores", "1 more than 64 cores"))


GPU_SITE = """\
machine: {name: small, cores: 128}
nodes:
  - {name: cpu, count: 1, cores: 64}
  - {name: gpu, count: 1, cores: 64, gpus: 8}
queues:
  - {name: plain, nodes: [cpu]}
  - {name: any}
"""
GPU_CSV = """\
job_id,submit,runtime,walltime,cores,gpus,queue,user
a,2016-02-01,36000,36000,4,8,any,ann
b,2016-02-01T06:00,18000,36000,8,4,any,bob
c,2016-02-01T08:00,3600,3600,8,,any,bob
d,2016-02-01T10:00,3600,3600,32,0,plain,cid
"""


def test_inspect_counts_gpus(run, tmp_path):
    (tmp_path / "h.csv").write_text(GPU_CSV)
    (tmp_path / "site.yaml").write_text(GPU_SITE)
    found = json.loads(run("inspect", "h.csv", "--config", "site.yaml", "--json")[1])["gpus"]
    assert found == {
        "jobs": 2,
        "gpu_hours": 100,
        "machine_gpus": 8,
        "offered_load": 100 / 80,
        "bottleneck": "gpus",
        "others_on_gpu_nodes": 1,
        "types": [{"name": "gpu", "jobs": 2, "gpu_hours": 100, "share": 1, "gpus": 8}],
        "queues": [
            {"name": "plain", "jobs": 0, "gpu_hours": 0, "share": 0},
            {"name": "any", "jobs": 2, "gpu_hours": 100, "share": 1},
        ],
        "users": [
            {"name": "ann", "jobs": 1, "gpu_hours": 80, "share": 0.8},
            {"name": "bob", "jobs": 1, "gpu_hours": 20, "share": 0.2},
        ],
    }
    out = run("inspect", "h.csv", "--config", "site.yaml")[1]
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "bottleneck GPUs" in lines
    assert "user ann 1 80 80.0" in lines
    assert not any(line.startswith("queue plain") for line in lines)


def test_gpus_of_no_type_are_those_of_no_type_of_nodes(run, tmp_path):
    """Where a job may have those of several; the types themselves have what only they can hold."""
    site = GPU_SITE.replace("  - {name: gpu,", "  - {name: old, count: 1, cores: 64, gpus: 4}\n  - {name: gpu,")
    site += "  - {name: own, nodes: [cpu, gpu]}\n"
    (tmp_path / "h.csv").write_text(GPU_CSV.replace("4,8,any", "4,8,own"))
    (tmp_path / "site.yaml").write_text(site.replace("cores: 128", "cores: 192"))
    found = json.loads(run("inspect", "h.csv", "--config", "site.yaml", "--json")[1])["gpus"]
    types = {each["name"]: (each["jobs"], each["gpu_hours"], each["gpus"]) for each in found["types"]}
    assert types == {"old": (0, 0, 4), "gpu": (1, 80, 8), "any": (1, 20, None)}


def test_inspect_counts_gpus_by_the_kinds_that_jobs_ask_for(run, tmp_path):
    head = "JobIDRaw|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes|AllocTRES\n"
    row = (
        "{0}|u{0}|p|COMPLETED|2025-09-01T00:00:00|2025-09-01T00:00:00|2025-09-01T01:00:00|3600|60|8|1|cpu=8,node=1{1}\n"
    )
    wanted = [",gres/gpu:a100=4,gres/gpu=4", ",gres/gpu=2", "", ",gres/gpu:h100=1,gres/gpu=1"]
    (tmp_path / "h.txt").write_text(head + "".join(row.format(i, text) for i, text in enumerate(wanted)))
    found = json.loads(run("inspect", "h.txt", "--json")[1])["gpus"]
    assert {each["name"]: each["gpu_hours"] for each in found["types"]} == {"a100": 4, "any": 2, "h100": 1}
    assert (found["offered_load"], found["bottleneck"], found["others_on_gpu_nodes"]) == (None, None, None)


def test_inspect_says_nothing_of_gpus_where_there_are_none(run, tmp_path):
    assert "gpus" not in json.loads(run("inspect", "h.csv", "--json")[1])
    assert "GPU" not in run("inspect", "h.csv")[1]


def test_import_does_not_overwrite_what_it_reads(run, tmp_path):
    for read in ("h.csv", "."):
        code, _, err = run("import", read, "-o", "h.csv")
        assert code == 1
        assert "h.csv: is an input, and would be overwritten" in err
    assert (tmp_path / "h.csv").read_text() == CSV


def test_output_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "h.csv").write_text(CSV)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "qconf", "inspect", tmp_path / "h.csv"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "qconf: the output cannot be written: No space left on device\n"


def test_inspect_of_a_month(run, tmp_path):
    (tmp_path / "h.swf").write_text(swf((0, 4), (86400 * 40, 4), (86400 * 41, 4)))
    result = json.loads(run("inspect", "h.swf", "--month", "2016-03", "--json")[1])
    assert (result["jobs"], result["outside_period"], result["read"]) == (2, 1, 3)
    result = json.loads(run("inspect", "h.swf", "--from", "2016-02-02", "--to", 1454284800 + 86400 * 41, "--json")[1])
    assert result["jobs"] == 1
    assert run("inspect", "h.swf", "--from", "noon")[0] == 1


@pytest.mark.parametrize("command", [("inspect",), ("import", "-o", "out.csv")])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"hello\n", "not recognised"),
     (CSV.replace("1800", "-7").replace("3600,3600", "x,y").encode(),
      "line 2: runtime = '-7': is negative; 2 of 3 rows"),
     (CSV.replace("2016-02-01", "02/01/2016").replace("2016-02-0", "02/0").replace(",0,", "/2016,0,")
      .replace("03,36", "03/2016,36").encode(), "--date-format '%d/%m/%Y' or --date-format '%m/%d/%Y'"),
     (gzip.compress(CSV.encode())[:-9], "cut off")],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_1_and_nothing_is_written(run, tmp_path, command, content, message):
    (tmp_path / "h").write_bytes(content)
    code, out, err = run(*command, "h")
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} == {"h", "h.csv"}


def test_import_writes_a_history_and_what_was_dropped(run, tmp_path):
    (tmp_path / "h.swf").write_text(swf((10, 4), (0, 8)) + "rubbish line\n")
    code, out, _ = run("import", "h.swf", "-o", "new/history.csv")
    assert code == 0
    assert "2 jobs of 3 records (swf)" in out
    assert (tmp_path / "new/history.csv").read_text() == (
        "job_id,submit,runtime,walltime,cores,queue,user,start,end,state,group\n"
        "0,1454284810,60,100,4,,7,1454284810,1454284870,completed,1\n"
        "1,1454284800,60,100,8,,7,1454284800,1454284860,completed,1\n"
    )
    listed = list(csv.reader((tmp_path / "new/dropped.csv").read_text().splitlines()))
    assert listed[1] == ["rubbish", "h.swf", "5", "not a job record", "2 fields instead of 18"]
    before, after = (json.loads(run("inspect", p, "--cores", 64, "--json")[1]) for p in ("h.swf", "new/history.csv"))
    same = ("jobs", "cpu_hours", "first_submit", "offered_load", "queues", "walltime_accuracy")
    assert [before[key] for key in same] == [after[key] for key in same]


def test_import_compresses_by_the_name_and_gives_the_same_bytes_again(run, tmp_path):
    (tmp_path / "h.swf").write_text(swf((10, 4)))
    assert json.loads(run("import", "h.swf", "-o", "a.csv.gz", "--json")[1])["jobs"] == 1
    first = (tmp_path / "a.csv.gz").read_bytes()
    run("import", "h.swf", "-o", "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == first
    assert gzip.decompress(first).startswith(b"job_id,submit")


def test_bad_rows_are_counted_and_listed_and_strict_stops(run, tmp_path):
    (tmp_path / "h.csv").write_text(CSV.replace("1800", "half an hour"))
    code, out, _ = run("import", "h.csv", "-o", "out.csv")
    assert code == 0
    assert "out.csv: 2 jobs of 3 records" in out
    assert "1 dropped: runtime not a duration" in out
    listed = list(csv.reader((tmp_path / "dropped.csv").read_text().splitlines()))
    assert listed[1] == ["a", "h.csv", "2", "runtime not a duration", "'half an hour'"]
    assert "1  runtime not a duration" in run("inspect", "h.csv", "--cores", 64)[1]
    code, out, err = run("inspect", "h.csv", "--cores", 64, "--strict")
    assert (code, out) == (1, "")
    assert "h.csv, line 2: runtime = 'half an hour': not a duration" in err


def test_nodes_take_their_cores_from_the_option_or_the_configuration(run, tmp_path):
    (tmp_path / "h.csv").write_text(CSV.replace("cores", "nodes"))
    site = "machine: {cores: 480, cores_per_node: 24}\nqueues: [{name: small}, {name: large}]\n"
    (tmp_path / "site.yaml").write_text(site)
    (tmp_path / "bare.yaml").write_text(site.replace(", cores_per_node: 24", ""))
    for how in (("--cores-per-node", 24), ("--config", "site.yaml"), ("--config", "bare.yaml", "--cores-per-node", 24)):
        assert json.loads(run("inspect", "h.csv", "--json", *how)[1])["cpu_hours"] == 240
    assert "how many cores a node has is unknown" in run("inspect", "h.csv", "--config", "bare.yaml")[2]
    err = run("inspect", "h.csv", "--config", "site.yaml", "--cores-per-node", 8)[2]
    assert "site.yaml: --cores-per-node = 8: the configuration says 24" in err


def test_a_log_is_an_argument_or_an_option(run, tmp_path):
    ways = [("h.csv",), ("--history", "h.csv")]
    for command in (("inspect", "--json"), ("simulate", "--json"), ("init",)):
        first, second = (run(*command, *way, "--cores", 64) for way in ways)
        assert first[0] == 0
        assert first == second


@pytest.mark.parametrize("command", ["tune", "backtest", "policies"])
def test_other_commands_take_the_log_as_an_argument_too(run, command):
    assert "nowhere.csv: there is no such file" in run(command, "nowhere.csv")[2]


def test_compare_takes_both_logs_as_arguments(run, tmp_path):
    assert "gone.csv: there is no such file" in run("compare", "h.csv", "gone.csv", "--cores", 64)[2]


def test_a_period_without_jobs(run, tmp_path):
    code, out, err = run("inspect", "h.csv", "--cores", 64, "--month", "2017-01")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no job was submitted between 2017-01-01" in err


def test_import_does_not_write_over_its_own_list(run, tmp_path):
    (tmp_path / "h.swf").write_text(swf((10, 4)))
    assert run("import", "h.swf", "-o", "dropped.csv")[0] == 1


def test_a_real_log_goes_through(run, tmp_path):
    log = "11/01/2026 00:00:01;S;1.s;user=u queue=q ctime=10 start=20 Resource_List.ncpus=4\n"
    (tmp_path / "20261101").write_text(log)
    code, out, _ = run("import", "20261101", "-o", "h.csv")
    assert code == 0
    assert "1 of them still run at the end of the log" in out
    code, _, err = run("inspect", "h.csv")
    assert code == 1
    assert "no usable job among 1 records" in err
