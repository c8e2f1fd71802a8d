"""Each figure's marks, read back, against the numbers of run.json and the schedules."""

import hashlib
import json
import os
import re
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
from qconf.report.formulas import reading_of
from qconf.report.run_directory import write_run
from qconf.report.story import story
from qconf.report.svg import DAY
from qconf.strategies import baselines
from tests.qconf.fidelity import logs
from tests.qconf.report import example, small
from tests.qconf.report.drawn import NS, panels, tree, vertices

NAMES = [
    "strategies",
    "order",
    "over-time",
    "waits",
    "gantt",
    "core-hours",
    "queue-map",
    "machine",
    "wait-by-size",
    "utilization-by-size",
    "partition-path",
    "surrogate",
]


@pytest.fixture(scope="module")
def found():
    return example.recommendation()


@pytest.fixture(scope="module")
def drawn(found):
    return figures(found, example.history())


def test_every_figure_is_drawn_as_a_file_of_its_own_too(drawn):
    assert list(drawn) == NAMES
    for figure in drawn.values():
        assert tree(figure).tag == f"{NS}svg"
        assert tree(figure).get("aria-label") == figure.caption != ""
        assert "prefers-color-scheme" in figure.file


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
    names = ("_hidden", "$x^{2$<b>&--></svg>")
    for figure in figures(small.recommendation(names=names)).values():
        tree(figure)
        assert "<b>" not in figure.svg


def test_strategies_stand_at_their_gains(found, drawn):
    (panel,) = panels(drawn["strategies"])
    rows = [row for row in found.rows if row.gain is not None and row.name != "current"]
    dots = {text.partition(":")[0]: x for x, _, text in panel.dots()}
    crosses = {text.partition(":")[0] for _, text in panel.titled("path") if text}
    assert crosses == {row.marked for row in rows}
    resampled = [row for row in rows if row.bootstrap is not None]
    assert set(dots) == {row.marked for row in resampled}
    for row in resampled:
        assert dots[row.marked] == pytest.approx(100 * row.bootstrap.expected, abs=0.3)
        (low, _), (high, _) = panel.line(row.marked)
        assert (low, high) == pytest.approx((100 * row.bootstrap.low, 100 * row.bootstrap.high), abs=0.3)


def test_the_ladder_from_small_to_large_has_the_numbers_of_run_json(found, tmp_path):
    rungs = tuple(Rung(f"rung {i}", row) for i, row in enumerate(found.rows[1:4]))
    rungs = (*rungs, Rung("rung 3", found.row, small.bootstrap(0.2, -0.1, 0.3)))
    found = replace(found, ladder=rungs)
    write_run(tmp_path / "run", found, example.history(), exported=Exported.of(found, exporter("pbs")()))
    written = json.loads((tmp_path / "run" / "run.json").read_text())["ladder"]
    (panel,) = panels(figures(found)["ladder"])
    titles = {text.partition(":")[0]: place for place, text in panel.titled("path") if text}
    assert list(titles) == [each["rung"] for each in written] == ["rung 0", "rung 1", "rung 2", "rung 3"]
    dots = {text.partition(":")[0]: x for x, _, text in panel.dots()}
    assert set(dots) == {each["rung"] for each in written if each["bootstrap"]} != set()
    for each in written:
        left = float(re.match(r"M(-?[\d.]+),", titles[each["rung"]].get("d"))[1])  # of the cross
        assert panel.x(left + 4) == pytest.approx(100 * each["gain"], abs=0.3)
        if each["bootstrap"]:
            assert dots[each["rung"]] == pytest.approx(100 * each["bootstrap"]["expected"], abs=0.3)
            (low, _), (high, _) = panel.line(f"{each['rung']}: {each['title'] or each['name']}")
            bounds = [100 * each["bootstrap"][end] for end in ("low", "high")]
            assert (low, high) == pytest.approx(bounds, abs=0.3)


def test_lines_of_the_ladder_with_the_same_title_say_by_which_search(found):
    rows = [replace(found.row, title="the order", variant=f"{kind} order") for kind in ("fitted", "guarded")]
    rows.append(replace(found.row, title="another", variant="fitted policy"))
    found = replace(found, ladder=tuple(Rung("order", row) for row in rows))
    assert found.rung_titles == ["the order (fitted)", "the order (guarded)", "another"]
    (panel,) = panels(figures(found)["ladder"])
    shown = {text.split(": ")[1] for _, text in panel.titled("path") if text}
    assert shown == set(found.rung_titles)


def test_over_time_is_what_the_schedules_say(found, drawn):
    shown = panels(drawn["over-time"])
    assert [panel.unit for panel in shown] == ["%", "core-hours", "jobs that wait"]
    for name, each in (("before", found.present), ("after", found.changed)):
        line = timeline(each.outcome)
        for panel, values in zip(shown, (100 * line.used, line.queued / 3600, line.waiting), strict=True):
            levels = panel.stairs(name)
            at = np.searchsorted([x for x, _ in levels], line.edges[:-1] + 600, side="right") - 1
            drawn_values = np.array([levels[max(i, 0)][1] for i in at])
            top = max(values.max(), 1.0)
            assert np.abs(drawn_values - values).max() < 0.012 * top, "a tenth of a unit of some hundred"
    used = found.rows[0].test["utilization_window"]
    spans = np.diff(timeline(found.present.outcome).edges)
    assert (timeline(found.present.outcome).used * spans).sum() / spans.sum() == pytest.approx(used, rel=1e-6)


def test_waits_are_those_of_run_json(found, drawn):
    """Where a line crosses a half is the median, where it ends the longest wait, of every queue."""
    shown = panels(drawn["waits"])
    names = ["all", *found.base.names]
    assert len(shown) == len(names)
    for panel, name in zip(shown, names, strict=True):
        for line, row in (("before", found.rows[0]), ("after", found.row)):
            summary = row.test.overall if name == "all" else row.test.queues[name]
            levels = panel.stairs(line)
            if summary["median_wait"] > 60:
                crossing = next(x for x, y in levels if y >= 50)
                assert crossing == pytest.approx(summary["median_wait"], rel=0.25 if summary["jobs"] < 20 else 0.08)
            if summary["max_wait"] > 60:
                full = next(x for x, y in levels if y >= 99.95)
                assert full == pytest.approx(summary["max_wait"], rel=0.05)
            waits = found.present.outcome if line == "before" else found.changed.outcome
            own = waits.wait if name == "all" else waits.queue_wait(name)
            assert levels[0][1] == pytest.approx(100 * (own <= 60).mean(), abs=1.0)


def plots(drawn):
    return [each for each in tree(drawn["gantt"]).iter(f"{NS}svg") if each.get("class") == "plot"]


def rectangles(path):
    for x, y, wide, tall in re.findall(r"M(-?\d+),(\d+)h(\d+)v(\d+)h-\d+z", path.get("d")):
        yield int(x), int(y), int(wide), int(tall)


def test_every_job_of_the_gantt_chart_is_where_its_schedule_has_it(found, drawn):
    data = json.loads(drawn["gantt"].data.replace("\\u003c", "<"))
    begin = int(tree(drawn["gantt"]).get("data-begin"))
    epoch = example.history().epoch
    jobs = found.present.outcome.period.workload
    ids = example.history().jobs.set_index("job_id")
    for k, (each, plot) in enumerate(zip((found.present, found.changed), plots(drawn), strict=True)):
        schedule = each.outcome.schedule
        start = {int(s): i for i, s in enumerate(range(len(schedule)))}
        assert len(start) == len(jobs)
        paths = list(plot.iter(f"{NS}path"))
        assert len(paths) == len(data["jobs"])
        for path in paths:
            name, user, queue, cores, submit, ran, walltime, *waits = data["jobs"][int(path.get("data-j"))]
            drawn_as = list(rectangles(path))
            assert {(x, wide) for x, _, wide, _ in drawn_as} == {(submit + waits[k], ran)}
            assert sum(tall for *_, tall in drawn_as) == cores
            row = ids.loc[name]
            assert (row["user"], row["queue"], row["walltime"]) == (user, data["queues"][queue], walltime)
            assert row["submit"] + epoch - begin == submit
    outcome = found.present.outcome
    during = (outcome.schedule.start < outcome.jobs.submit[-1]) & (outcome.schedule.end > outcome.jobs.submit[0])
    assert len(data["jobs"]) >= during.sum()
    waits = np.array([each[7] for each in data["jobs"]])
    assert waits.max() == outcome.schedule.wait[during].max()


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
    jobs = json.loads(figure.data)["jobs"]
    assert 300 < len(jobs) <= 500
    line = timeline(found.present.outcome)
    peak = line.edges[np.argmax(line.waiting)] + example.history().epoch
    begin, end = (int(tree(figure).get(f"data-{each}")) for each in ("begin", "end"))
    assert begin <= peak <= begin + end


def test_core_hours_add_up(found, drawn):
    history = example.history()
    work = (history.jobs["cores"] * np.minimum(history.jobs["runtime"], history.jobs["walltime"])).sum() / 3600
    days, tens, month = panels(drawn["core-hours"])
    total = sum((high - low) for _, _, low, high, _, _ in days.bars())
    assert total == pytest.approx(work, rel=0.02)
    by_queue = dict.fromkeys(found.base.names, 0.0)
    for _, _, low, high, _, title in days.bars():
        by_queue[title.partition(":")[0]] += high - low
    for name, hours in by_queue.items():
        own = history.jobs[history.jobs["queue"] == name]
        expected = (own["cores"] * np.minimum(own["runtime"], own["walltime"])).sum() / 3600
        assert hours == pytest.approx(expected, rel=0.04, abs=0.004 * work)
    for panel in (tens, month):
        sums = sum((high - low) * _days(left, right, history) for left, right, low, high, _, _ in panel.bars())
        assert sums == pytest.approx(work, rel=0.03)


def _days(left, right, history):
    """Days of a bar, of which a gap was taken at both sides, as far as the log goes."""
    wide = min(DAY, right - left) * 0.06 / 0.94 if right - left < DAY else 0.06 * DAY
    return (min(right + wide, history.epoch + history.span[1] + 1) - (left - wide)) / DAY


def test_the_queue_map_counts_every_job(found, drawn):
    (panel,) = panels(drawn["queue-map"])
    counts = [int(re.sub(r"\D", "", text)) for *_, look, text in panel.bars() if "density" in look]
    assert sum(counts) == len(example.history())
    ranges = [(left, right, low, high) for left, right, low, high, look, _ in panel.bars() if "range" in look]
    assert len(ranges) == len({(queue.cores, queue.walltime) for queue in found.base.queues})
    for left, right, low, high in ranges:
        near = [
            queue
            for queue in found.base.queues
            if queue.cores[1] == pytest.approx(high, rel=0.06) and queue.walltime[1] == pytest.approx(right, rel=0.06)
        ]
        assert near
        assert left < right
        assert low < high


def test_the_machine_bar_has_every_core():
    found = small.recommendation()
    before, after, _ = panels(figures(found)["machine"])
    assert [(round(left), round(right)) for left, right, *_ in before.bars()] == [(0, 128)]
    sizes = {title.partition(":")[0]: right - left for left, right, _, _, _, title in after.bars()}
    assert sizes == {
        "short": pytest.approx(24, abs=0.1),
        "long": pytest.approx(72, abs=0.1),
        "common pool": pytest.approx(32, abs=0.1),
    }


def test_partition_sizes_are_the_curves_of_run_json(found, drawn):
    for name, key, scale in (("wait-by-size", "waits", 1), ("utilization-by-size", "utilizations", 100)):
        (panel,) = panels(drawn[name])
        for curve in found.curves:
            points = panel.line(curve.queue)
            assert [x for x, _ in points] == pytest.approx(curve.sizes, rel=0.01)
            values = np.maximum(np.array(getattr(curve, key)) * scale, 60 if key == "waits" else 0)
            assert [y for _, y in points] == pytest.approx(values.tolist(), rel=0.05, abs=0.5)


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
    (panel,) = panels(drawn["partition-path"])
    waits = [chapter.wait / 3600 for chapter in path.chapters if chapter.wait is not None]
    assert [y for _, y in panel.line(path.strategy)] == pytest.approx(waits, rel=0.02)
    assert path.chapters[0].text.startswith("Sizes in proportion")
    assert any("Merged small + small72" in chapter.text for chapter in path.chapters)
    rejected = [text for _, _, text in panel.dots() if text.startswith("tried")]
    assert len(rejected) == sum(len(chapter.rejected) for chapter in path.chapters) == 1


def test_surrogates_are_those_of_the_log(found, drawn):
    steps = [step for row in found.rows for step in row.decisions if step["step"] == "surrogate"]
    shown = panels(drawn["surrogate"])
    assert len(shown) == len(steps) == 3
    for panel, step in zip(shown, steps, strict=True):
        points = [(x, y) for x, y, _ in panel.dots()]
        assert [x for x, _ in points] == pytest.approx(step["simulated"], rel=0.02)
        assert [y for _, y in points] == pytest.approx(step["expected"], rel=0.02)


def test_recorded_waits_stand_across_from_simulated_ones(found):
    days = (Day("small", "2016-02-01", 9, 7200.0, 3600.0), Day("medium", "2016-02-02", 2, 30.0, 90000.0))
    near = Fidelity(100, 7200.0, 0.0, 3600.0, 0.0, 0.9, days)
    (panel,) = panels(figures(replace(found, near=near))["recorded"])
    assert [(x, y) for x, y, _ in panel.dots()] == [
        pytest.approx((7200, 3600), rel=0.03),
        pytest.approx((60, 90000), rel=0.03),
    ]


def test_windows_stand_at_their_agreement():
    near = verify(logs.written(logs.site(order="sjf")), logs.site(), lengths=(4 * 3600, 12 * 3600), count=24)
    (panel,) = panels(agreement_figure(near))
    windows = [each for each in near.document()["windows"] if not np.isnan(each["figures"]["agreement"])]
    assert len(windows) > 15
    for (x, y, text), window in zip(panel.dots(), windows, strict=True):
        assert x == pytest.approx((window["begin"] + window["end"]) / 2, abs=1800)
        assert y == pytest.approx(100 * window["figures"]["agreement"], abs=0.1)
        assert text.endswith(f"jobs start: {100 * window['figures']['agreement']:.1f} %")
    (rule,) = (each for each in panel.element.iter(f"{NS}path") if each.get("class") == "rule")
    level = panel.y(next(y for _, y in vertices(rule.get("d"))))
    assert level == pytest.approx(100 * near.grade.agreement, abs=0.1)


def test_the_order_is_its_formula(found, drawn):
    (panel,) = panels(drawn["order"])
    reading = reading_of(found.config)
    for (name, _), points in panel.lines().items():
        job = reading.job(int(name.startswith("long")), int("wide" in name))
        for x, y in points[5:-5:20]:
            value = float(reading.value(job, [x])[0])
            assert y == pytest.approx(value, rel=0.1)


@pytest.fixture(scope="module")
def tested():
    strategies = ["current", "lxf-easy", "pp"]
    return backtest(example.history(), example.recommendation().base, period="7d", fewest=20, strategies=strategies)


def test_a_backtest_has_a_panel_for_each_strategy_with_its_ratios(tested):
    drawn = backtest_figures(tested, example.history())
    assert list(drawn) == ["mean-wait", "mean-bounded-slowdown", "utilization", "core-hours"]
    names = [name for name in tested.strategies if name not in ("fcfs-easy", "current")]
    for figure, metric, floor in (
        ("mean-wait", "mean_wait", 60),
        ("mean-bounded-slowdown", "mean_bounded_slowdown", 1),
    ):
        shown = panels(drawn[figure])
        assert len(shown) == len(names)
        for name, panel in zip(names, shown, strict=True):
            for other in ("fcfs-easy", "current"):
                values = [
                    (mine.summary[metric] + floor) / (theirs.summary[metric] + floor)
                    for mine in tested.results
                    for theirs in tested.results
                    if (mine.strategy, theirs.strategy) == (name, other) and mine.period == theirs.period
                ]
                assert [y for _, y in panel.line(other)] == pytest.approx(np.minimum(values, 3).tolist(), abs=0.03)
    for name, panel in zip(names, panels(drawn["utilization"]), strict=True):
        used = [100 * each.summary["utilization_window"] for each in tested.results if each.strategy == name]
        assert [y for _, y in panel.line("strategy")] == pytest.approx(used, abs=0.5)


def test_one_test_period_has_a_row_for_each_strategy(tested):
    fold = tested.folds[0]
    results = [each for each in tested.results if each.period == fold.label]
    one = replace(tested, folds=(fold,), results=results)
    drawn = backtest_figures(one, example.history())
    values = {each.strategy: each.summary for each in results}
    for figure, metric, floor in (
        ("mean-wait", "mean_wait", 60),
        ("mean-bounded-slowdown", "mean_bounded_slowdown", 1),
    ):
        (panel,) = panels(drawn[figure])
        names = [name for name in tested.strategies if name not in ("fcfs-easy", "current")]
        dots = {(text.partition(":")[0], text.rpartition(" ")[2]): x for x, _, text in panel.dots()}
        assert set(dots) == {(name, other) for name in names for other in ("fcfs-easy", "current")}
        for (name, other), ratio in dots.items():
            expected = (values[name][metric] + floor) / (values[other][metric] + floor)
            assert ratio == pytest.approx(min(expected, 3), abs=0.01)
    (panel,) = panels(drawn["utilization"])
    own = {text.partition(":")[0]: x for x, _, text in panel.dots() if text.endswith("strategy")}
    assert own == {name: pytest.approx(100 * values[name]["utilization_window"], abs=0.1) for name in tested.strategies}


def test_a_machine_in_pieces_does_not_make_the_page_large():
    """Wide jobs among many narrow ones lie in up to ninety pieces; 4000 jobs, each drawn twice."""
    rng = np.random.default_rng(1)
    cores = np.exp(rng.uniform(0, np.log(20_000), 4000)).astype(np.int64) + 1
    runtime = rng.integers(600, 80_000, 4000)
    submit = np.sort(rng.integers(0, int((cores * runtime).sum() / 300_000 / 0.95), 4000))
    jobs = Workload(submit, cores, runtime, runtime + 100)
    base = SiteConfig(machine=MachineConfig(cores=300_000), queues=(QueueConfig(name="all"),))
    each = Evaluated(base, Outcome(Period(jobs, base), simulate(jobs, base.system())))
    assert max(len(taken) for _, taken in pieces(each, np.arange(4000))) > 50
    drawn = gantt([("before", each), ("after", each)], None, 0, "UTC")
    assert len(drawn.svg) + len(drawn.data) < 2_000_000, "of three million for the whole page"
