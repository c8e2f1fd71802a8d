"""Limits that hold for some hours as lines of cron, for PBS and Slurm, and back."""

import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.config import load, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.hours import read_hours
from tests.qconf.export.sites import FRESH, pbs_files

SITE = """\
machine: {name: tiny, cores: 16}
queues:
  - {name: work, cores: [1, 16], walltime: [0, 1h], max_run: 8, max_user_run: 3}
  - {name: large, cores: [1, 16], walltime: [1h, 20h]}
hours:
  - {queue: large, days: [mon, tue, wed, thu, fri], begin: "08:00", end: "18:00", max_run: 2, max_user_cores: 4}
  - {queue: work, begin: "22:30", end: "06:00", max_run: 20, max_run_cores: 0}
  - {queue: work, days: [sun], begin: "12:00", end: "13:00", max_user_run: 1}
"""


def files(target, text=SITE):
    return exporter(target)().export(parse(text)).files


def lines(target, text=SITE):
    return [line for line in files(target, text)["qconf-hours"].splitlines() if line[0].isdigit()]


def test_pbs_sets_each_attribute_whole():
    assert lines("pbs") == [
        "0 8 * * 1,2,3,4,5 root qmgr -c 'set queue large max_run = \"[o:PBS_ALL=2]\"'",
        "0 8 * * 1,2,3,4,5 root qmgr -c 'set queue large max_run_res.ncpus = \"[u:PBS_GENERIC=4]\"'",
        "0 18 * * 1,2,3,4,5 root qmgr -c 'unset queue large max_run'",
        "0 18 * * 1,2,3,4,5 root qmgr -c 'unset queue large max_run_res.ncpus'",
        "30 22 * * * root qmgr -c 'set queue work max_run = \"[u:PBS_GENERIC=3],[o:PBS_ALL=8]\"'",  # its own holds, too
        "30 22 * * * root qmgr -c 'set queue work max_run_res.ncpus = \"[o:PBS_ALL=0]\"'",
        "0 6 * * * root qmgr -c 'set queue work max_run = \"[u:PBS_GENERIC=3],[o:PBS_ALL=8]\"'",
        "0 6 * * * root qmgr -c 'unset queue work max_run_res.ncpus'",
        "0 12 * * 7 root qmgr -c 'set queue work max_run = \"[o:PBS_ALL=8],[u:PBS_GENERIC=1]\"'",
        "0 13 * * 7 root qmgr -c 'set queue work max_run = \"[o:PBS_ALL=8],[u:PBS_GENERIC=3]\"'",
    ]


def test_slurm_sets_the_qos_of_the_queue():
    found = lines("slurm")
    line = (
        "0 {} * * 1,2,3,4,5 root sacctmgr --immediate modify qos large set GrpJobs={} MaxTRESPerUser=cpu={} > /dev/null"
    )
    assert found[:2] == [line.format(8, 2, 4), line.format(18, -1, -1)]
    assert "PartitionName=large" in files("slurm")["partitions.conf"]
    assert "QOS=large" in files("slurm")["partitions.conf"]
    assert "add qos large\n" in files("slurm")["qos.sacctmgr"]


def taken_off(script, monkeypatch):
    """Return the files that `uninstall` removes where the hours are installed, and no hook is."""
    names = {"__name__": "qconf-pbs"}
    exec(script, names)
    removed = []
    monkeypatch.setitem(names, "hooks", list)
    monkeypatch.setattr("os.path.exists", lambda _: False)
    monkeypatch.setattr("os.path.lexists", lambda path: path == "/etc/cron.d/qconf-hours")
    monkeypatch.setattr("os.remove", removed.append)
    assert not names["uninstall"](None)
    monkeypatch.undo()
    return removed


@pytest.mark.parametrize("target", ["pbs", "slurm"])
def test_the_plan_installs_them_and_takes_them_back(target, monkeypatch):
    exported = pbs_files(parse(SITE), current=FRESH) if target == "pbs" else files(target)
    steps, _, undo = exported["PLAN.md"].partition("## Undo")
    assert "install -m 644 qconf-hours /etc/cron.d/qconf-hours\n" in steps
    if target == "pbs":
        assert "python3 -I qconf-pbs uninstall\n" in undo
        assert taken_off(exported["qconf-pbs"], monkeypatch) == ["/etc/cron.d/qconf-hours"]
    else:
        assert "rm -f /etc/cron.d/qconf-hours\n" in undo
    assert ("unset queue large max_run" if target == "pbs" else "qos large set GrpJobs=-1") in undo
    plain = files(target, SITE.partition("hours:")[0])
    plain.pop("qconf-pbs", None)  # it takes off what any earlier export installed
    assert "qconf-hours" not in "".join([*plain, *plain.values()])


@pytest.mark.parametrize("target", ["pbs", "slurm"])
def test_they_are_read_back(target):
    assert tuple(read_hours(files(target)["qconf-hours"])) == parse(SITE).hours


def test_an_export_for_slurm_is_read_with_them(tmp_path):
    for name, text in files("slurm").items():
        (tmp_path / name).write_text(text)
    (tmp_path / "slurm.conf").write_text("ClusterName=tiny\nNodeName=n[1-16] CPUs=1\ninclude partitions.conf\n")
    found = exporter("slurm")().read(tmp_path / "slurm.conf").config
    assert found.hours == parse(SITE).hours
    assert [queue.max_run for queue in found.queues] == [8, None]


def test_init_takes_them_for_pbs(tmp_path):
    server = "".join(
        f"create queue {name}\nset queue {name} queue_type = Execution\nset queue {name} enabled = True\n"
        f"set queue {name} started = True\n"
        for name in ("work", "large")
    )
    (tmp_path / "server").write_text(server)
    (tmp_path / "hours").write_text(files("pbs")["qconf-hours"])
    arguments = ["init", "--from-pbs", f"{tmp_path}/server", "--cores", "16", "--hours", f"{tmp_path}/hours"]
    done = CliRunner().invoke(qconf, [*arguments, "-o", f"{tmp_path}/site.yaml"])
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "site.yaml").hours == parse(SITE).hours


@pytest.mark.parametrize("target", ["pbs", "slurm"])
@pytest.mark.parametrize("begin", ["05:00", "06:00", "22:00"])
def test_times_that_meet_have_no_form(target, begin):
    text = SITE + f'  - {{queue: work, begin: "{begin}", end: "22:30", max_run: 1}}\n'
    with pytest.raises(ExportError, match="two times of max_run of queue work meet or overlap"):
        files(target, text)


def test_an_entry_changed_by_hand_has_one_message():
    with pytest.raises(InputError, match="is no entry of hours"):
        list(read_hours("# hours: {queue: work}\n"))
