"""From the shared options to a history and its configuration."""

from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from qconf.backtest import walk_forward
from qconf.cli import backtest, compare, tune
from qconf.cli.messages import history_warnings, unknown_queues
from qconf.cli.options import Number, stem
from qconf.cli.settings import strategy_settings
from qconf.cli.source import Source, history_options
from qconf.errors import QconfError
from qconf.strategies import option_fields

CSV = "job_id,submit,runtime,walltime,cores,queue\n" + "".join(
    f"{i},2016-0{i}-15,60,100,{i},{'ab'[i % 2]}\n" for i in range(1, 5)
)
SITE = "machine: {cores: 64}\nqueues:\n  - {name: b}\n"


def load_history(*given, **period):
    return Source(*given, **period).load()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text(CSV)
    return path


def test_without_a_configuration_one_is_derived(log):
    history, config = load_history([log], cores=16)
    assert (len(history), config.names, config.machine.cores) == (4, ("b", "a"), 16)
    with pytest.raises(QconfError, match="size of the machine is unknown"):
        load_history([log])


def test_with_a_configuration_the_jobs_are_routed_to_its_queues(log, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    history, config = load_history([log], site)
    assert set(history.jobs["queue"]) == {"b"}
    assert config.machine.cores == 64
    assert load_history([log], site, 64)[1] == config
    with pytest.raises(QconfError, match="--cores = 32: the configuration says 64"):
        load_history([log], site, 32)


@pytest.mark.parametrize(
    ("period", "jobs"),
    [
        ({"month": "2016-02"}, ["2"]),
        ({"start": "2016-02-15"}, ["2", "3", "4"]),
        ({"end": "2016-02-15"}, ["1"]),
        ({"start": "2016-02-15T00:00:01", "end": "1459000000"}, ["3"]),
    ],
)
def test_periods(log, period, jobs):
    history, _ = load_history([log], cores=16, **period)
    assert history.jobs["job_id"].tolist() == jobs
    assert history.outside == 4 - len(jobs)


def test_a_derived_configuration_is_that_of_the_whole_log(log):
    assert load_history([log], cores=16, month="2016-02")[1] == load_history([log], cores=16)[1]


@pytest.mark.parametrize(
    "arguments",
    [{"history": []}, {"month": "2016-02", "start": "2016-02-01"}, {"month": "2016-02", "end": "2016-03-01"}],
)
def test_options_that_do_not_go_together(log, arguments):
    with pytest.raises(click.UsageError):
        load_history(**({"history": [log], "cores": 16} | arguments))


def test_the_options_are_one_argument():
    @click.command()
    @history_options
    def command(**given):
        assert given == {"source": Source()}

    command.main([], standalone_mode=False)


@pytest.mark.parametrize("text", ["1456790400000", "99999999999999999999999999", "-99999999999999"])
def test_times_that_no_log_has(log, text):
    with pytest.raises(QconfError, match=r"no time that a log could have.*not milliseconds"):
        load_history([log], cores=16, start=text)


def test_a_date_without_dashes_is_not_taken_for_a_second(log):
    with pytest.raises(QconfError, match="could be a date or an epoch second"):
        load_history([log], cores=16, start="20160201")


def test_jobs_that_name_no_queue_of_the_configuration_are_suspicious(log, tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    half, _ = load_history([log], tmp_path / "site.yaml")
    routed = "jobs name a queue that the configuration lacks, and are routed by their size"
    assert unknown_queues(half) == [f"2 of 4 {routed}"]
    assert unknown_queues(replace(half, read=20, outside=16)) == [f"2 of 20 {routed}"]
    assert unknown_queues(replace(half, read=21, outside=17)) == []
    (tmp_path / "site.yaml").write_text(SITE.replace("name: b", "name: other"))
    (warning,) = unknown_queues(load_history([log], tmp_path / "site.yaml", month="2016-02")[0])
    assert "is it the right one?" in warning


def test_users_of_a_group_that_have_no_job_are_counted(log, tmp_path):
    (tmp_path / "site.yaml").write_text(SITE + "targets: [{group: g, users: [alice, bob], weight: 2}]\n")
    history, config = load_history([log], tmp_path / "site.yaml")
    assert history_warnings(config, history)[1:] == [  # behind that of queues
        "targets[0].users: 2 of the 2 users of group g have no job in this history: alice, bob"
    ]


@pytest.mark.parametrize("text", ["nan", "-inf", "inf", "0.5"])
def test_a_number_in_a_range_is_a_number(text):
    with pytest.raises(click.BadParameter):
        Number(1.0).convert(text, None, None)
    assert Number(1.0).convert("1.5", None, None) == 1.5


@pytest.mark.parametrize("end", ["2016-02-10", "2016-02-20"])
def test_an_end_that_is_not_after_the_start(log, end):
    with pytest.raises(QconfError, match=f"--to = '{end}': the end does not come after the start, --from 2016-02-20"):
        load_history([log], cores=16, start="2016-02-20", end=end)


@pytest.mark.parametrize("period", [{"end": "9999-12-31"}, {"start": "1969-12-31"}])
def test_a_side_may_be_as_good_as_open(log, period):
    assert len(load_history([log], cores=16, **period)[0]) == 4


def test_a_name_for_what_is_made_of_a_history(tmp_path, monkeypatch):
    (tmp_path / "logs" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "logs" / "sub")
    (tmp_path / "logs" / "sub" / "latest.csv").symlink_to(tmp_path / "h.csv")
    assert stem(Path("latest.csv")) == "latest"
    assert [stem(Path(each)) for each in ("a.swf.gz", "b.csv", "..", ".", "/")] == ["a", "b", "logs", "sub", "history"]


@pytest.mark.parametrize("command", [tune.command, backtest.command, compare.command], ids=lambda each: each.name)
def test_what_the_options_are_unless_given_is_what_the_strategies_take(command):
    unless = command.make_context(command.name, []).params
    assert not set(unless) & set(option_fields())
    wanted = {name: 2 if name == "workers" else field.default for name, field in option_fields().items()}
    assert strategy_settings(None, {}) == wanted
    if command is not tune.command:
        assert unless["warmup_days"] == walk_forward.WARMUP_DAYS


STRATEGIES = "strategies: {samples: 50, pool-entry: either, weights: [1, 2.5]}\n"


def test_settings_of_the_file_give_way_to_those_of_the_command_line(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE + STRATEGIES)
    found = strategy_settings(site, {"samples": 20})
    assert (found["samples"], found["pool_entry"], found["weights"]) == (20, "either", (1.0, 2.5))
    assert found["slack"] == option_fields()["slack"].default


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sample: 50", "line 4: strategies.sample = 50: no such setting, did you mean samples?; known are seed,"),
        ("samples: 5", "line 4: strategies.samples = 5: 5 is not in the range x>=20."),
        ("pool_entry: both", "line 4: strategies.pool_entry = both: 'both' is not one of 'move', 'either'."),
        ("weights: [0, 1]", "line 4: strategies.weights = [0, 1]: '0,1' is not like 1,2,3"),
        ("split_on: walltime, split-on: walltime", "line 4: strategies.split-on = walltime: given twice"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_its_line(tmp_path, setting, message):
    site = tmp_path / "site.yaml"
    site.write_text(f"{SITE}strategies: {{{setting}}}\n")
    with pytest.raises(QconfError) as error:
        strategy_settings(site, {})
    assert str(error.value).startswith(f"{site}: the configuration has 1 mistake\n  {message}")


@pytest.mark.parametrize("command", [tune.command, backtest.command, compare.command], ids=lambda each: each.name)
def test_the_settings_of_strategies_have_a_help_of_their_own(command):
    own, settings = (
        CliRunner().invoke(command, [name], terminal_width=80, prog_name=command.name).output
        for name in ("--help", "--help-strategies")
    )
    assert "--help-strategies" in own
    for name in option_fields():
        assert f" --{name.replace('_', '-')} " not in own
        assert settings.count(f"--{name.replace('_', '-')} ") == 1
    assert "\ndp-nlp, dqr, hybrid" in settings
    for name in ("date-format", "columns", "units", "cores-per-node", "unpacked"):
        assert f" --{name} " not in own
        assert settings.count(f"\n  --{name} ") == 1
    assert len(own.splitlines()) <= 40
    assert "Examples:" in own or command is not tune.command


def test_a_preset_sets_what_no_option_does(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE + "strategies: {degree: 2, seed: 7}\n")
    found = strategy_settings(site, {"chunk": 48}, preset="paper")
    assert (found["degree"], found["seed"], found["chunk"], found["decide_by"]) == (3, 7, 48, "program")
    given = tune.command.make_context("tune", ["--preset", "paper", "--chunk=48"])
    assert given.params["preset"] == "paper"
    with pytest.raises(click.BadParameter):
        tune.command.make_context("tune", ["--preset", "papers"])


def test_settings_are_accepted_as_flags():
    given = tune.command.make_context("tune", ["--pool-entry", "either", "--samples=30"])
    assert (given.params["pool_entry"], given.params["samples"]) == ("either", 30)
    with pytest.raises(click.NoSuchOption):
        tune.command.make_context("tune", ["--sample", "30"])


def test_a_preset_that_gives_processors_one_by_one_says_so(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE.replace("cores: 64", "cores: 64, cores_per_node: 8, whole_nodes: true"))
    source = Source(config_path=site, preset="paper")
    base = source.config(None)
    (warning,) = source.preset_warnings(base)
    assert "whole nodes of 8" in warning
    assert not replace(source, preset=None).preset_warnings(Source(config_path=site).config(None))
