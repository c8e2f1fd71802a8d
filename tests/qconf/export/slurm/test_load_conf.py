"""`load-conf` of an export, in a folder in place of /etc/slurm: what it saves, and installs in which order."""

import json
import os
import runpy

import pytest

from qconf.config import parse
from tests.qconf.export.sites import HYBRID, NODES, slurm_files

CONF = "ClusterName = c\nPriorityType = priority/multifactor\nPriorityWeightAge = 1000\nPriorityWeightTRES = (null)\n"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The script's names in a folder of an export, with the files that new-conf would write, beside /etc/slurm."""
    there, folder = tmp_path / "etc", tmp_path / "export"
    there.mkdir()
    folder.mkdir()
    monkeypatch.chdir(folder)
    script = runpy.run_path(str(_written(folder / "load-conf", slurm_files(parse(HYBRID), nodes=NODES)["load-conf"])))
    names, calls = script["load"].__globals__, []
    places = {"FOLDER": there, "CONF": there / "slurm.conf", "ROUTING": there / "job_submit.lua"}
    fake = {"printed": lambda *words: _said(words), "restart": lambda: calls.append(1), "up": lambda: True}
    names |= {**places, **fake, "PROMOTE": {}, "calls": calls}
    for name in ("beside", "after", "back"):
        (folder / f"slurm.conf.{name}").write_text(f"{name}\n")
    for name in ("partitions.conf", "job_submit.lua", "job_submit.back.lua"):
        (folder / name).write_text(f"our {name}\n")
    return names, there, folder


@pytest.fixture
def saved(plan):
    """The same once it has saved a slurm.conf of before."""
    names, there, _ = plan
    (there / "slurm.conf").write_text("old\n")
    names["save"]()
    return plan


def _written(path, text):
    path.write_text(text)
    return path


def _said(words):
    return CONF if words[:2] == ("scontrol", "show") else ""


def test_files_keep_mode_and_links_and_come_back(plan, tmp_path):
    names, there, _ = plan
    real = _written(tmp_path / "elsewhere.conf", "old\n")
    real.chmod(0o640)
    (there / "slurm.conf").symlink_to(real)
    _written(there / "job_submit.lua", "theirs\n").chmod(0o600)
    os.chown(real, 1234, 4321) if os.geteuid() == 0 else None
    owner = (real.stat().st_uid, real.stat().st_gid)
    names["save"]()
    for name in ("beside", "beside", "after", "back", "before", "before"):
        names["load"](name)
        assert (there / "slurm.conf").is_symlink()
        assert real.read_text() == {"before": "old\n"}.get(name, f"{name}\n")
        assert (real.stat().st_mode & 0o777, real.stat().st_uid, real.stat().st_gid) == (0o640, *owner)
        assert (there / "job_submit.lua").stat().st_mode & 0o777 == 0o600
        assert not (there / "partitions.conf").exists() or (there / "partitions.conf").stat().st_mode & 0o777 == 0o640
    assert (there / "job_submit.lua").read_text() == "theirs\n"
    assert sorted(each.name for each in there.iterdir()) == ["job_submit.lua", "slurm.conf"]
    assert len(names["calls"]) == 6


@pytest.mark.parametrize(
    ("loaded", "name", "said"),
    [
        ("old", "after", "slurm.conf.before is loaded, from which no step leads to after"),
        ("after", "beside", "slurm.conf.after is loaded, from which no step leads to beside"),
        ("beside", "before", "slurm.conf.beside is loaded, from which no step leads to before"),
        ("another", "beside", "was changed since the plan wrote it"),
    ],
)
def test_out_of_order_nothing_is_installed(loaded, name, said, saved):
    names, there, _ = saved
    (there / "slurm.conf").write_text(f"{loaded}\n")
    before = {each.name: each.read_text() for each in there.iterdir()}
    with pytest.raises(SystemExit, match=said):
        names["load"](name)
    assert {each.name: each.read_text() for each in there.iterdir()} == before
    assert names["calls"] == []


def test_what_was_saved_stays_and_a_loaded_state_is_never_saved(saved):
    names, _, folder = saved
    names["load"]("beside")
    names["save"]()
    assert (folder / "slurm.conf.before").read_text() == "old\n"
    (folder / "slurm.conf.before").unlink()
    with pytest.raises(SystemExit, match=r"slurm\.conf\.before is gone"):
        names["save"]()


def test_an_undo_where_nothing_was_written_says_so(saved):
    names, _, folder = saved
    (folder / "slurm.conf.back").unlink()
    with pytest.raises(SystemExit, match=r"there is no slurm\.conf\.back"):
        names["load"]("back")


def test_priorities_that_an_administrator_gave_are_found(plan):
    """Not what the parts make of a job, or what those of others say; the pool's are qconf-promote's."""
    names, there, _ = plan
    sprio = (
        "1|0|40|0|0|0|0|0|\n2|0|0|0|0|0|0|0|\n3|0|40|0|0|0|0|0|\n10|0|0|0|0|0|0|0|\n11|0|9|0|0|0|0|0|\n"
        "12|0|0|0|0|0|0|0|\n15|0|0|0|50|0|300|0|cpu=1.50\n16|0|0|0|0|0|0|0|\n"
    )
    rows = {  # priority, nice value, since when it may start, where, whose
        "1": (35, 5, 100, "a|u|x"),
        "2": (123456, 0, 90, "a|u|x"),
        "3": (9, 0, 100, "a|u|x|qconf-promote:small"),
        "4": (1001, 0, "N/A", "a|u|x"),
        "5_[1-3%2]": (1, 0, 9999, "a|u|x"),
        "6_7": (50, 0, "N/A", "a|u|x"),
        "9": (1, 0, 9999, "a|u|x"),
        "10": (1, 0, 200, "a|u|x"),
        "11": (9, 0, 190, "a|u|x"),
        "12": (1, 0, 150, "a|u|x"),
        "13": (60, -60, 9999, "a|u|x"),
        "14": (200, 0, 9999, "b|v|x"),
        "15": (352, 0, 300, "b|v|x"),
        "16": (2, 0, 300, "a|u|x"),
        "17": (352, 0, 9999, "b|v|x"),
    }
    squeue = "".join(
        f"{job}|{job.partition('_[')[0]}|{priority}|{nice}|{since}|{whose}{'|' * (4 - whose.count('|'))}\n"
        for job, (priority, nice, since, whose) in rows.items()
    )
    names["printed"] = lambda *words: sprio if words[0] == "sprio" else squeue
    given = {"2", "4", "6_7", "12", "14", "16"}
    weights = CONF.replace("1000", "1000\nPriorityWeightPartition = 300\nPriorityWeightFairShare = 700")
    assert {job for job, (_, of) in names["priorities"](CONF).items() if of} == given | {"17"}
    assert {job for job, (_, of) in names["priorities"](weights).items() if of} == given - {"6_7"} | {"4"}
    (there / "job_submit.lua").write_text("local EXPECTED = {{ 600, 9000 }, { math.huge, 0 } }\n")  # of any job
    assert {job for job, (_, of) in names["priorities"](CONF).items() if of} == given - {"4", "6_7"}
    basic = names["priorities"]("PriorityType = priority/basic\n")
    assert {job for job, (_, of) in basic.items() if not of} == {"3"}


@pytest.mark.parametrize("plugins", ["lua", "(null)", "require_timelimit"])
@pytest.mark.parametrize("routes", [True, False])
def test_submissions_that_come_too_fast_wait_and_the_routing_comes_back(plugins, routes, plan, monkeypatch, capsys):
    """Where a job comes at each look, a job_submit.lua holds submissions for seconds; Slurm loads lua for it."""
    names, there, folder = plan
    routing, conf = there / "job_submit.lua", there / "slurm.conf"
    conf.write_text("old\n")
    if plugins == "lua":
        routing.write_text("theirs\n")
    if not routes:
        (folder / "job_submit.lua").unlink()
    (there / "job_submit_lua.so").touch()
    names["save"]()
    clock, jobs, confs = iter(range(1000)), [], []

    def printed(*words):
        if words == ("scontrol", "reconfigure"):
            confs.append(conf.read_text().splitlines()[-1])
        if words[0] == "scontrol":
            of = f"JobSubmitPlugins = {plugins}\nPluginDir = /none:{there}\nSLURM_VERSION = 22.05.8\n"
            return f"{CONF}{of}AccountingStorageType = accounting_storage/slurmdbd\n"
        held = routing.exists() and "EAGAIN" in routing.read_text()
        if words[0] == "squeue" and "--states=PENDING,RUNNING" in words and not held:
            jobs.append(f"{len(jobs)} PENDING")
        return (
            "".join(f"{job}\n" for job in jobs)
            if words[0] in ("squeue", "sacct") and "--Format" not in words[-1]
            else ""
        )

    names["printed"] = printed
    monkeypatch.setattr(names["time"], "monotonic", lambda: next(clock))
    monkeypatch.setattr(names["time"], "sleep", lambda seconds: None)
    names["load"]("beside")
    assert "they wait and are tried again for some seconds" in capsys.readouterr().out
    loads = {"lua": [], "(null)": ["JobSubmitPlugins=lua"]}
    assert confs == loads.get(plugins, ["JobSubmitPlugins=lua,require_timelimit"])
    theirs = "theirs\n" if plugins == "lua" else None
    assert (routing.read_text() if routing.exists() else None) == ("our job_submit.lua\n" if routes else theirs)
    assert conf.read_text() == "beside\n"
    assert json.loads((folder / "priorities.beside").read_text()) == {}


def test_a_load_that_is_stopped_while_submissions_wait_leaves_what_was_there(saved, monkeypatch):
    """And one that was killed, and so left it, is run again from where it was."""
    names, there, _ = saved
    (there / "job_submit_lua.so").touch()
    config = f"AccountingStorageType = accounting_storage/slurmdbd\nPluginDir = {there}\n"
    names["printed"] = lambda *words: config if words[:2] == ("scontrol", "show") else ""
    monkeypatch.setitem(
        names, "wait_until_quiet", lambda config: names["hold"](config) and names["sys"].exit("stopped")
    )
    for _ in range(2):
        with pytest.raises(SystemExit, match="stopped"):
            names["load"]("beside")
        assert sorted(each.name for each in there.iterdir()) == ["job_submit_lua.so", "slurm.conf"]
        assert (there / "slurm.conf").read_text() == "old\n"
        assert names["hold"](config)  # as if killed
        assert names["loaded"]() == {"before"}
