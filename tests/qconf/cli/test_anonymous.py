"""No user and no group of a log or a configuration is in anything that --anonymous writes or prints."""

import json
import re

import pandas as pd
import pytest

from qconf.config import AccessConfig, ShareConfig, Target, ThrottleConfig
from qconf.errors import InputError
from qconf.history import read
from qconf.history.anonymous import Names
from tests.qconf.cli.commands import invoke
from tests.qconf.small import site

NAMES = ("alice", "bob", "carol", "physics", "chemistry")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    users, groups = NAMES[:3], NAMES[3:]
    rows = [
        {"job_id": i, "submit": 1454284800 + 2400 * i, "runtime": 3000 + 40 * (i % 90), "walltime": 7200}
        | {"cores": 8 + i % 40, "queue": ("short", "long")[i % 2], "user": users[i % 3], "group": groups[i % 2]}
        for i in range(600)
    ]
    rows.append(rows[0] | {"job_id": "x", "cores": 0})
    rows.append(rows[0] | {"job_id": "y", "cores": "alice"})  # a row that has slipped by some columns
    pd.DataFrame(rows).to_csv(folder / "log.csv", index=False)
    (folder / "site.yaml").write_text(
        "machine: {name: toy, cores: 64}\n"
        "queues:\n"
        "  - {name: short, cores: [1, 64], walltime: [0, 24h], access: {users: [+alice, bob@host]}}\n"
        "  - {name: long, cores: [1, 64], walltime: [0, 24h]}\n"
        "targets:\n"
        "  - {group: staff-carol, users: [carol], p95_wait: 2h}\n"
    )
    return folder


def contents(folder):
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


def run(*arguments):
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def tune(inputs, out, *more):
    plain = ("--strategies", "auto", "--config", inputs / "site.yaml", "-o", out)
    return run("tune", inputs / "log.csv", *plain, *more)


def test_a_run_without_a_name(inputs, tmp_path):
    named = tune(inputs, tmp_path / "named")
    assert "carol" in named + "".join(contents(tmp_path / "named").values())
    printed = tune(inputs, tmp_path / "run", "--anonymous")
    written = contents(tmp_path / "run")
    assert len(written) > 12
    for where, text in (("printed", printed), *written.items()):
        assert not re.search(rf"\b({'|'.join(NAMES)})\b", text), where
    record, plain = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("run", "named"))
    assert record["verdict"] == plain["verdict"]
    assert record["base"]["targets"][0]["group"].startswith("group")
    assert "y,log.csv,603,cores not a number,\n" in written[tmp_path / "run" / "dropped.csv"]
    assert "user1" in written[tmp_path / "run" / "report.html"]
    for mine, theirs in zip(record["strategies"], plain["strategies"], strict=True):
        assert mine["test"]["overall"]["mean_wait"] == theirs["test"]["overall"]["mean_wait"]


def test_the_other_commands(inputs, tmp_path):
    given = ("--config", inputs / "site.yaml", "--anonymous")
    printed = run(
        "backtest", inputs / "log.csv", "--period", "5d", "--strategies", "pp", *given, "-o", tmp_path / "backtest"
    )
    run("import", inputs / "log.csv", "--anonymous", "-o", tmp_path / "log.csv")
    for where, text in (("printed", printed), *contents(tmp_path).items()):
        assert not re.search(rf"\b({'|'.join(NAMES)})\b", text), where
    assert read([tmp_path / "log.csv"]).table["user"].nunique() == 3


def test_what_the_server_holds_is_refused(inputs, tmp_path):
    (tmp_path / "print_server.txt").write_text("create queue short\n")
    options = ["--config", inputs / "site.yaml", "--anonymous", "--current", tmp_path / "print_server.txt"]
    with pytest.raises(InputError, match="Leave it out, or --anonymous"):
        invoke("tune", inputs / "log.csv", *options)


def test_the_users_of_deleted_jobs_have_no_name(tmp_path):
    header = "JobIDRaw|User|Account|Partition|State|Submit|Start|End|Timelimit|AllocCPUS"
    rows = ("1|bob|acc|a|COMPLETED|1000|1100|1200|10:00|1", "2|alice|acc|a|CANCELLED|1001|Unknown|1300|10:00|1")
    (tmp_path / "log").write_text("\n".join((header, *rows, "")))
    found = Names().records(read([tmp_path / "log"]))
    assert found.deleted[["user", "group"]].values.tolist() == [["user2", "group1"]]


def test_throttles_and_shares_have_no_name():
    base = site({"name": "a"}, mode="shared")
    throttles = (ThrottleConfig(user="alice", max_run=4), ThrottleConfig(group="physics", max_run=6))
    shares = (
        ShareConfig(name="physics", shares=3),
        ShareConfig(name="alice", group="physics"),
        ShareConfig(name="bob"),
    )
    found = Names().config(base.replace(throttles=throttles, shares=shares))
    assert [(each.user, each.group) for each in found.throttles] == [("user1", None), (None, "group1")]
    assert [(each.name, each.group) for each in found.shares] == [
        ("group1", None),
        ("user1", "group1"),
        ("user2", None),
    ]


def test_the_same_number_for_the_same_name():
    names = Names()
    base = site({"name": "a"}, {"name": "b"}, mode="shared")
    access = AccessConfig(users=("+alice", "-bob@node1", "*"), groups=("physics",))
    queues = (base.queues[0].model_copy(update={"access": access}), *base.queues[1:])
    config = base.replace(queues=queues, targets=(Target(group="physics", users=("bob",), p95_wait=60),))
    found = names.config(config)
    assert found.queues[0].access.users == ("+user2", "-user1@node1", "*")
    assert found.queues[0].access.groups == (found.targets[0].group,)
    assert found.targets[0].users == ("user1",)
    assert names.config(config) == found
    assert found.queues[1:] == config.queues[1:]
