"""Each figure's marks, read back, against the numbers of run.json and the schedules."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from parsim import Workload, simulate
from qconf.backtest import backtest
from qconf.config import MachineConfig, PoolConfig, QueueConfig, SiteConfig
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.timeline import timeline
from qconf.export import exporter
from qconf.fidelity.verify import verify
from qconf.recommend import Evaluated, default_strategies
from qconf.recommend.fidelity import Day, Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report.exported import Exported
from qconf.report.figures import backtest_figures, figures
from qconf.report.figures.checks import agreement_figure
from qconf.report.figures.gantt import gantt, partitions, pieces
from qconf.report.figures.orders import tails_figure
from qconf.report.figures.workload import queue_map
from qconf.report.formulas import reading_of
from qconf.report.run_directory import write_run
from qconf.report.story import story
from qconf.strategies import baselines
from tests.qconf.fidelity import logs
from tests.qconf.report import example, small

NAMES = ["strategies", "order", "glance", "over-time", "waits", "gantt", "core-hours", "queue-map", "machine"]
NAMES += ["wait-by-size", "utilization-by-size", "partition-path", "surrogate"]


def rows(figure):
    """Every row of data that a figure has."""

    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                yield from value if key in ("values", "jobs") and isinstance(value, list) else walk(value)
        elif isinstance(node, list):
            for each in node:
                yield from walk(each)

    return [each for each in walk(figure.spec) if isinstance(each, dict)]


@pytest.fixture(scope="module")
def found():
    return example.recommendation()


@pytest.fixture(scope="module")
def drawn(found):
    return figures(found, example.history())


def test_every_figure_is_a_file_of_its_own_too(drawn):
    assert list(drawn) == NAMES
    for figure in drawn.values():
        assert json.loads(figure.file) == figure.spec
        assert figure.caption


def test_the_same_bytes_in_another_process():
    code = (
        "import hashlib; from qconf.report.figures import figures\n"
        "from tests.qconf.report import example as e\n"
        "for f in figures(e.recommendation(), e.history()).values(): print(hashlib.sha256(f.file.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    drawn = figures(example.recommendation(), example.history())
    assert done.stdout.split() == [hashlib.sha256(each.file.encode()).hexdigest() for each in drawn.values()]


def test_without_numbers_there_is_little_to_draw():
    none = small.recommendation("KEEP")
    none = replace(none, rows=[replace(row, test=None, gain=None, bootstrap=None) for row in none.rows], curves=[])
    assert list(figures(none)) == ["machine"]


def test_hostile_names_are_text():
    names = ("_hidden", "$x^{2$<b>&--></script>")
    for figure in figures(small.recommendation(names=names)).values():
        assert "<" not in figure.json
        assert json.loads(figure.json) == figure.spec


def test_strategies_stand_at_their_gains(found, drawn):
    shown = rows(drawn["strategies"])
    wanted = [row for row in found.rows if row.gain is not None and row.name != "current"]
    assert {each["label"] for each in shown if "label" in each} == {row.marked for row in wanted}
    for row in wanted:
        same = [each for each in shown if each.get("label") == row.marked]
        assert {each["test"] for each in same} == {max(100 * row.gain, -100)}
        if row.bootstrap is not None:
            ends = {(each["low"], each["expected"], each["high"]) for each in same}
            assert ends == {tuple(100 * getattr(row.bootstrap, end) for end in ("low", "expected", "high"))}


def test_the_ladder_from_small_to_large_has_the_numbers_of_run_json(found, tmp_path):
    rungs = tuple(Rung(f"rung {i}", row) for i, row in enumerate(found.rows[1:4]))
    found = replace(found, ladder=(*rungs, Rung("rung 3", found.row, small.bootstrap(0.2, -0.1, 0.3))))
    write_run(tmp_path / "run", found, example.history(), exported=Exported.of(found, exporter("pbs")()))
    written = json.loads((tmp_path / "run" / "run.json").read_text())["ladder"]
    shown = {each["label"].partition(":")[0]: each for each in rows(figures(found)["ladder"]) if "label" in each}
    assert sorted(shown) == [each["rung"] for each in written] == ["rung 0", "rung 1", "rung 2", "rung 3"]
    for each in written:
        assert shown[each["rung"]]["test"] == pytest.approx(max(100 * each["gain"], -100))


def test_lines_of_the_ladder_with_the_same_title_say_by_which_search(found):
    lines = [replace(found.row, title="the order", variant=f"{kind} order") for kind in ("fitted", "guarded")]
    lines.append(replace(found.row, title="another", variant="fitted policy"))
    found = replace(found, ladder=tuple(Rung("order", row) for row in lines))
    assert found.rung_titles == ["the order (fitted)", "the order (guarded)", "another"]
    shown = {each["label"].split(": ")[1] for each in rows(figures(found)["ladder"]) if "label" in each}
    assert shown == set(found.rung_titles)


def test_over_time_is_what_the_schedules_say(found, drawn):
    for when, each in (("before", found.present), ("after", found.changed)):
        line = timeline(each.outcome)
        values = [row["value"] for row in rows(drawn["over-time"]) if row["when"] == when]
        wanted = [*(100 * line.used), *(line.queued / 3600), *line.waiting]
        assert values == pytest.approx(wanted, abs=0.06)


def test_waits_are_those_of_the_schedules(found, drawn):
    for when, each in (("before", found.present), ("after", found.changed)):
        names = each.outcome.period.base.names
        for queue, waits in zip(names, each.outcome.queue_waits, strict=True):
            (glance,) = {row["says"] for row in rows(drawn["glance"]) if (row["queue"], row["when"]) == (queue, when)}
            assert f"mean {waits.mean() / 3600:.2f} h" in glance
            for row in rows(drawn["waits"]):
                if (row["panel"], row["when"]) == (queue, when) and row["share"]:
                    assert row["share"] == pytest.approx(100 * (waits <= row["wait"]).mean(), abs=0.06)


def test_every_job_of_the_gantt_chart_is_where_its_schedule_has_it(found, drawn):
    shown = rows(drawn["gantt"])
    jobs = found.present.outcome.period.workload
    epoch, said = 1000 * example.history().epoch, {row["job"]: row["says"] for row in shown if "says" in row}
    assert len(said) > 100
    for when, each in (("before", found.present), ("after", found.changed)):
        schedule = each.outcome.schedule
        for job, says in said.items():
            parts = [row for row in shown if row["job"] == job and row.get("panel") == when]
            assert f"waited {schedule.wait[job] / 3600:.2f} h {when}" in says
            if parts:
                assert sum(row["high"] - row["low"] for row in parts) == jobs.cores[job]
                assert all(row["a"] >= epoch + 1000 * schedule.start[job] for row in parts)
                assert all(row["b"] <= epoch + 1000 * schedule.end[job] for row in parts)


@pytest.mark.parametrize("mode", ["shared", "partitioned", "hybrid"])
def test_no_two_jobs_are_drawn_on_the_same_cores(mode):
    found = example.recommendation()
    config = found.base if mode == "shared" else found.rows[4].config
    if mode == "hybrid":
        sizes = [queue.partition - 240 * (queue.partition > 240) for queue in config.queues]
        pool = PoolConfig(cores=config.machine.cores - sum(sizes), threshold=2.5, entry="move", placement="combined")
        config = found.base.with_partitions(sizes, pool=pool, mode="hybrid")
    period = found.present.outcome.period
    each = Evaluated(config, Outcome(period, period.simulate(config)))
    rows = np.arange(len(period))
    schedule = each.outcome.schedule
    bounds = np.cumsum([0, *(size for _, size in partitions(each))])
    busy = np.zeros(config.machine.cores, dtype=np.int64)  # until when a core is taken
    for job, taken in pieces(each, rows):
        assert sum(n for _, n in taken) == schedule.cores[job]
        for low, n in taken:
            assert (busy[low : low + n] <= schedule.start[job]).all()
            busy[low : low + n] = schedule.end[job]
        inside = {int(np.searchsorted(bounds, low, side="right")) for low, _ in taken}
        assert len(inside) == len(schedule.placement(job))


def test_a_long_period_shows_the_jobs_about_its_longest_queue(found, monkeypatch):
    monkeypatch.setattr(sys.modules[partitions.__module__], "MOST", 500)
    figure = figures(found, example.history())["gantt"]
    shown = rows(figure)
    assert 300 < sum("says" in row for row in shown) <= 500
    line = timeline(found.present.outcome)
    peak = 1000 * (line.edges[np.argmax(line.waiting)] + example.history().epoch)
    assert min(row["a"] for row in shown if "a" in row) <= peak <= max(row["b"] for row in shown if "b" in row)


def test_core_hours_add_up(found, drawn):
    jobs = example.history().workload(found.base)
    work = (jobs.cores * jobs.effective_runtime).sum() / 3600
    charts = drawn["core-hours"].spec["vconcat"]
    days = charts[0]["data"]["values"]
    assert sum(row["high"] - row["low"] for row in days) == pytest.approx(work, rel=0.001)


def test_the_queue_map_counts_every_job(found, drawn):
    spec = drawn["queue-map"].spec
    total = sum(int(row["says"].split(" job")[0].replace("\u202f", "")) for row in spec["datasets"]["jobs"])
    assert total == len(example.history())
    labels = {row["label"] for row in rows(drawn["queue-map"]) if "label" in row}
    assert labels == {queue.name for queue in found.base.queues}
    cut = (found.base.queues[0].model_copy(update={"cores": (1, 64)}),)
    other = found.base.replace(queues=(*cut, *found.base.queues[1:]))
    both = queue_map(example.history().workload(found.base), found.base, other).spec["concat"]
    marked = [{row["label"]: row["changed"] for row in side["layer"][1]["data"]["values"]} for side in both]
    assert [[name for name, changed in side.items() if changed] for side in marked] == [[cut[0].name]] * 2


def test_the_machine_bar_has_every_core():
    shown = rows(figures(small.recommendation())["machine"])
    sizes = {(row["when"], row["part"]): row["high"] - row["low"] for row in shown}
    after = {("after", "short"): 24, ("after", "long"): 72, ("after", "common pool"): 32}
    assert sizes == {("before", "shared by all queues"): 128, **after}


def test_partition_sizes_are_the_curves_of_run_json(found, drawn):
    for name, key, scale in (("wait-by-size", "waits", 1), ("utilization-by-size", "utilizations", 100)):
        for curve in found.curves:
            line = [row for row in rows(drawn[name]) if row["queue"] == curve.queue and "when" not in row]
            assert [row["size"] for row in line] == list(curve.sizes)
            values = np.maximum(np.array(getattr(curve, key)) * scale, 60 if key == "waits" else 0)
            assert [row["value"] for row in line] == pytest.approx(values.tolist())


def test_sizes_are_drawn_only_where_partitions_are_proposed_or_wanted():
    found = example.recommendation()
    usual = replace(found, settings={"strategies": ["current", *baselines(), *default_strategies()]})
    assert all(row.ineligible for row in usual.rows if row.config is not None and row.config.mode != "shared")
    assert "wait-by-size" not in figures(usual)
    assert "wait-by-size" in figures(replace(usual, settings={"strategies": ["current", "pp"]}))
    assert "wait-by-size" in figures(replace(usual, base=found.rows[4].config))
    proposed = [replace(row, ineligible="", gain=0.1, bootstrap=small.bootstrap(0.1, 0, 0.2)) for row in usual.rows]
    assert "wait-by-size" in figures(replace(usual, rows=proposed))


def test_the_path_of_the_partitions_is_their_story(found, drawn):
    path = story(found)
    shown = drawn["partition-path"].spec["layer"]
    waits = [chapter.wait / 3600 for chapter in path.chapters if chapter.wait is not None]
    assert [row["wait"] for row in shown[0]["data"]["values"]] == pytest.approx(waits)
    assert path.chapters[0].text.startswith("Sizes in proportion")
    assert any("Merged small + small72" in chapter.text for chapter in path.chapters)
    assert len(shown[2]["data"]["values"]) == sum(len(chapter.rejected) for chapter in path.chapters) == 1


def test_surrogates_are_those_of_the_log(found, drawn):
    steps = [step for row in found.rows for step in row.decisions if step["step"] == "surrogate"]
    shown = drawn["surrogate"].spec["data"]["values"]
    assert [row["x"] for row in shown] == [max(each, 60) for step in steps for each in step["simulated"]]
    assert [row["y"] for row in shown] == [max(each, 60) for step in steps for each in step["expected"]]


def test_recorded_waits_stand_across_from_simulated_ones(found):
    days = (Day("small", "2016-02-01", 9, 7200.0, 3600.0), Day("medium", "2016-02-02", 2, 30.0, 90000.0))
    near = Fidelity(100, 7200.0, 0.0, 3600.0, 0.0, 0.9, days)
    shown = figures(replace(found, near=near))["recorded"].spec["data"]["values"]
    assert [(row["x"], row["y"]) for row in shown] == [(7200, 3600), (60, 90000)]


def test_windows_stand_at_their_agreement():
    near = verify(logs.written(logs.site(order="sjf")), logs.site(), lengths=(4 * 3600, 12 * 3600), count=24)
    dots, rule = agreement_figure(near).spec["layer"]
    windows = [each for each in near.document()["windows"] if not np.isnan(each["figures"]["agreement"])]
    assert len(windows) > 15
    wanted = [100 * window["figures"]["agreement"] for window in windows]
    assert [row["value"] for row in dots["data"]["values"]] == pytest.approx(wanted)
    assert rule["encoding"]["y"]["datum"] == pytest.approx(100 * near.grade.agreement)


def test_the_order_is_its_formula(found, drawn):
    reading = reading_of(found.config)
    for row in rows(drawn["order"])[5::20]:
        job = reading.job(int(row["job"].startswith("long")), int("wide" in row["job"]))
        if row["wait"] > 60:
            assert row["value"] == pytest.approx(float(reading.value(job, [row["wait"]])[0]), rel=0.02)


def test_prices_of_long_waits_stand_where_they_lead():
    step = {"step": "tails", "weights": [0.0, 1.0, 2.0, 3.0], "chosen": 3.0, "slowdown_ratios": [0.3, 0.3, 0.4, 0.5]}
    step |= {"wait_ratios": [0.5, 0.5, 0.6, 0.7], "longest_ratios": [1.4, 1.4, 1.2, 1.1]}
    marks = {(row["longest"], row["cut"], row["price"], row["kind"]) for row in rows(tails_figure([step]))}
    others = {(1.2, 40.0, "2", "other prices"), (1.4, 50.0, "0 to 1", "other prices")}
    assert marks == {(1.1, 30.0, "3", "chosen"), *others}
    assert tails_figure([{**step, "wait_ratios": [0.5] * 4, "longest_ratios": [1.4] * 4}]) is None
    assert tails_figure([{"step": "orders"}]) is None


@pytest.mark.parametrize("folds", [None, 1])
def test_a_backtest_has_the_ratios_of_each_strategy(folds):
    strategies = ["current", "lxf-easy", "pp"]
    base = example.recommendation().base
    tested = backtest(example.history(), base, period="7d", fewest=20, strategies=strategies)
    kept = tested.folds[:folds]
    labels = [fold.label for fold in kept]
    results = [each for each in tested.results if each.period in labels]
    tested = replace(tested, folds=kept, results=results)
    drawn = backtest_figures(tested, example.history())
    assert list(drawn) == ["mean-wait", "mean-bounded-slowdown", "utilization", "core-hours"]
    of = {(each.strategy, each.period): each.summary for each in results}
    for metric, floor in (("mean_wait", 60), ("mean_bounded_slowdown", 1)):
        shown = rows(drawn[metric.replace("_", "-")])
        names = {name for name in tested.strategies if name not in ("fcfs-easy", "current")}
        assert {row["panel"] for row in shown} == names
        for row in shown:
            mine, theirs = of[row["panel"], row["period"]], of[row["what"].removeprefix("over "), row["period"]]
            assert row["value"] == pytest.approx(min((mine[metric] + floor) / (theirs[metric] + floor), 3))
    for row in rows(drawn["utilization"]):
        if row["what"] == "strategy":
            assert row["value"] == pytest.approx(100 * of[row["panel"], row["period"]]["utilization_window"])


def test_a_machine_in_pieces_does_not_make_the_page_large():
    """Wide jobs among many narrow ones lie in up to ninety pieces, each drawn twice."""
    rng = np.random.default_rng(1)
    cores = np.exp(rng.uniform(0, np.log(20_000), 4000)).astype(np.int64) + 1
    runtime = rng.integers(600, 80_000, 4000)
    submit = np.sort(rng.integers(0, int((cores * runtime).sum() / 300_000 / 0.95), 4000))
    jobs = Workload(submit, cores, runtime, runtime + 100)
    base = SiteConfig(machine=MachineConfig(cores=300_000), queues=(QueueConfig(name="all"),))
    each = Evaluated(base, Outcome(Period(jobs, base), simulate(jobs, base.system())))
    assert max(len(taken) for _, taken in pieces(each, np.arange(4000))) > 50
    drawn = gantt([("before", each), ("after", each)], None, 0, "UTC")
    assert len(drawn.json) < 900_000, "of two million for the whole page"
