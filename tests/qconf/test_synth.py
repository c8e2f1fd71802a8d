"""The generated workload has the numbers that the paper gives, whatever the seed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from parsim import Queue, System, Workload, simulate
from qconf import synth
from qconf.cli import main, qconf
from qconf.config import load
from qconf.errors import InputError, QconfError
from qconf.history import clean, read
from qconf.history.chunks import OTHER_CORES, UNREADABLE, WITH_GPUS
from qconf.history.sample import SAMPLES, known
from qconf.synth.stable import as_history, stable_workload

ROOT = Path(__file__).parents[2]
HOUR = 3600
MONTHS = ["2015-07", "2015-08", "2015-09", "2015-10", "2015-11", "2015-12", "2016-01", "2016-02", "2016-03"]
COUNTS = {
    "idqueue": [3013, 4205, 4161, 2917, 2996, 2162, 2938, 5198, 6449],
    "small": [1066, 1171, 978, 1441, 1122, 943, 844, 1410, 1588],
    "small72": [238, 245, 207, 244, 290, 179, 191, 233, 216],
    "medium": [324, 1101, 454, 640, 454, 332, 352, 433, 503],
    "large": [19, 13, 10, 19, 13, 4, 2, 8, 3],
}
# min cores, max cores, walltime above, walltime at most
RANGES = {
    "idqueue": (8, 256, 0, 2 * HOUR),
    "small": (24, 1032, 0, 24 * HOUR),
    "small72": (24, 1032, 24 * HOUR, 72 * HOUR),
    "medium": (1033, 8208, 0, 24 * HOUR),
    "large": (8209, 22800, 0, 24 * HOUR),
}
SEEDS = (0, 1, 2, 7)


@pytest.fixture(scope="module", params=SEEDS)
def jobs(request: pytest.FixtureRequest) -> pd.DataFrame:
    frame = synth.generate("cray-xc40", 9, request.param)
    frame["time"] = pd.to_datetime(frame["submit"], unit="s", utc=True)
    frame["month"] = frame["time"].dt.strftime("%Y-%m")
    frame["area"] = frame["cores"] * frame[["runtime", "walltime"]].min(axis=1)
    return frame


def test_counts_are_the_papers(jobs: pd.DataFrame) -> None:
    table = pd.crosstab(jobs["month"], jobs["queue"])
    assert list(table.index) == MONTHS
    for queue, counts in COUNTS.items():
        assert table[queue].to_list() == counts
    assert (jobs["job_id"] == np.arange(1, len(jobs) + 1)).all()
    assert jobs["submit"].is_monotonic_increasing


def test_every_job_belongs_to_its_queue_and_to_no_other(jobs: pd.DataFrame) -> None:
    nodes = -(-jobs["cores"] // 24) * 24
    for cores in (jobs["cores"], nodes):
        for queue, (low, high, above, most) in RANGES.items():
            fits = cores.between(low, high) & (jobs["walltime"] > above) & (jobs["walltime"] <= most)
            mine = jobs["queue"] == queue
            assert fits[mine].all()
            # Routing by the order of the queues gives the same: the first queue that admits a job is its own.
            later = list(RANGES)[list(RANGES).index(queue) + 1 :]
            assert not fits[jobs["queue"].isin(later)].any()
    assert jobs["runtime"].ge(1).all()
    assert (jobs["runtime"] <= jobs["walltime"]).all()


def test_offered_load_of_every_month(jobs: pd.DataFrame) -> None:
    for month, area in jobs.groupby("month")["area"].sum().items():
        seconds = pd.Period(str(month)).days_in_month * 24 * HOUR
        assert 0.6 <= area / (35232 * seconds) <= 0.95


def test_cpu_hours_follow_the_papers_words(jobs: pd.DataFrame) -> None:
    area = jobs.pivot_table(index="month", columns="queue", values="area", aggfunc="sum")
    share = area.div(area.sum(axis=1), axis=0) * 100
    december = share.loc["2015-12"]
    assert december["medium"] == pytest.approx(57, abs=2)
    assert december["small"] == pytest.approx(22, abs=2)
    assert december["small72"] == pytest.approx(21, abs=2)
    assert (share["medium"] > share["small"]).all()
    assert (share["small"] > share["small72"]).all()
    assert (share["small72"] > share[["idqueue", "large"]].max(axis=1)).all()
    medium = area["medium"]
    assert medium["2015-12"] < 0.75 * medium["2015-11"]
    assert medium["2016-01"] < 0.85 * medium["2015-12"]
    assert medium["2016-02"] > 1.4 * medium["2016-01"]


def test_days_and_weeks_have_their_cycles(jobs: pd.DataFrame) -> None:
    hour = jobs["time"].dt.hour.value_counts().sort_index()
    assert hour.loc[9:17].mean() > 3 * hour.loc[2:6].mean()
    day = jobs["time"].dt.day_of_week.value_counts().sort_index()
    assert day.loc[0:4].mean() > 1.6 * day.loc[5:6].mean()


def test_sizes_are_whole_nodes_with_peaks_at_powers_of_two(jobs: pd.DataFrame) -> None:
    whole = jobs["cores"] % 24 == 0
    assert set(jobs.loc[~whole, "queue"]) == {"idqueue"}
    assert set(jobs.loc[~whole, "cores"]) == {8}
    nodes = jobs["cores"] // 24
    power = whole & (nodes & (nodes - 1) == 0)
    peaks = power.groupby(jobs["queue"]).mean()
    assert peaks.drop("large").min() > 0.7
    assert 0.4 < peaks["large"] < 1
    assert peaks.max() < 0.97


def test_most_walltimes_are_the_queues_maximum(jobs: pd.DataFrame) -> None:
    at_most = jobs["walltime"] == jobs["queue"].map({queue: bounds[3] for queue, bounds in RANGES.items()})
    assert at_most.groupby(jobs["queue"]).mean().between(0.6, 0.95).all()


def test_runtimes_are_skewed_and_some_jobs_are_killed(jobs: pd.DataFrame) -> None:
    killed = (jobs["runtime"] == jobs["walltime"]).groupby(jobs["queue"]).mean()
    assert killed.drop("large").between(0.03, 0.12).all()
    runtime = jobs.groupby("queue")["runtime"]
    assert (runtime.mean() > 1.1 * runtime.median()).all()
    idle = jobs[jobs["queue"] == "idqueue"]["runtime"]
    assert idle.std() > idle.mean()


def test_users_are_few_and_come_in_bursts(jobs: pd.DataFrame) -> None:
    share = jobs["user"].value_counts(normalize=True)
    assert 100 <= len(share) <= 180
    assert 0.05 < share.iloc[0] < 0.30
    assert share.iloc[:10].sum() > 0.3
    own = jobs[jobs["queue"] == "idqueue"]
    by_chance = float((own["user"].value_counts(normalize=True) ** 2).sum())
    assert (own["user"] == own["user"].shift()).mean() > 3 * by_chance


def test_a_month_is_the_same_however_many_are_made() -> None:
    whole = synth.generate("cray-xc40", 3, seed=5)
    alone = synth.generate_month("cray-xc40", 2, seed=5)
    pd.testing.assert_frame_equal(whole.tail(len(alone)).reset_index(drop=True), alone)
    assert not alone["runtime"].equals(synth.generate_month("cray-xc40", 2, seed=6)["runtime"])


def test_profiles_repeat_beyond_the_ninth_month() -> None:
    tenth = synth.generate_month("cray-xc40", 9, seed=1)
    assert tenth["queue"].value_counts().to_dict() == {queue: counts[0] for queue, counts in COUNTS.items()}
    assert set(pd.to_datetime(tenth["submit"], unit="s").dt.strftime("%Y-%m")) == {"2016-04"}
    assert tenth["job_id"].iloc[0] == sum(sum(counts) for counts in COUNTS.values()) + 1


def test_the_offered_load_can_be_set() -> None:
    table = synth.month_table("cray-xc40", 9, seed=3, offered_load=0.75)
    assert table["load"].to_numpy() == pytest.approx(0.75, rel=1e-3)
    usual = synth.month_table("cray-xc40", 9, seed=3)
    assert table["medium %"].to_numpy() == pytest.approx(usual["medium %"].to_numpy(), abs=0.2)


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        ({"preset": "cray"}, "use one of cray-xc40|Use one of cray-xc40"),
        ({"months": 0}, "months = 0: must be at least 1"),
        ({"seed": -1}, "seed = -1: must not be negative"),
        ({"offered_load": 0.0}, "load = 0.0: must be above 0"),
        ({"offered_load": float("nan")}, "load = nan: must be above 0"),
        ({"offered_load": 2.0}, "out of reach of the jobs of .* Ask for less than"),
        ({"offered_load": 0.01}, "out of reach of the jobs of .* Ask for more than"),
    ],
)
def test_what_cannot_be_generated_says_so(arguments: dict[str, object], needle: str) -> None:
    with pytest.raises(InputError, match=needle):
        synth.generate(**arguments)  # type: ignore[arg-type]


def test_files_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        synth.write_months("cray-xc40", 2, 0, tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["cray-xc40-2015-07.csv.gz", "cray-xc40-2015-08.csv.gz"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    text = gzip.decompress((tmp_path / "a" / names[0]).read_bytes()).decode()
    assert text.splitlines()[0] == "job_id,submit,runtime,walltime,cores,queue,user"


def test_the_mixed_sample_is_what_the_preset_makes_and_its_site_holds_every_job() -> None:
    config = load(ROOT / "configs" / "mixed.yaml")
    for month, path in enumerate(sorted((ROOT / "data" / "mixed").glob("*.csv.gz"))):
        frame = pd.read_csv(path)
        pd.testing.assert_frame_equal(frame, synth.generate_month("mixed", month), check_dtype=False)
        found = clean(read(path), config)
        assert found.reasons == {}
        assert not {OTHER_CORES, WITH_GPUS, UNREADABLE} & {*found.changed}
        jobs = found.workload(config)
        gpus = np.array([sum(c.count * dict(c.resources).get("gpus", 0) for c in each) for each in jobs.requests])
        of_gpu = jobs.queue == config.names.index("gpu")
        assert ((gpus[jobs.request] > 0) == of_gpu).all()
        hours = (gpus[jobs.request] * jobs.effective_runtime)[of_gpu].sum() / 3600
        assert 0.5 < hours / (64 * 24 * 31) < 1  # of the GPUs


@pytest.mark.parametrize(("path", "month"), list(zip(SAMPLES, (6, 7, 8), strict=True)))
def test_the_sample_is_what_the_generator_makes(path: Path, month: int) -> None:
    assert path.stat().st_size < 1_000_000
    pd.testing.assert_frame_equal(pd.read_csv(path), synth.generate_month("cray-xc40", month), check_dtype=False)


def test_of_the_sample_the_months_are_known_that_are_over() -> None:
    assert known("2016-02") == SAMPLES[:2]
    assert known("2016-03") == known(None) == SAMPLES
    assert known("2015-01") == SAMPLES, "there is no such month, which is said where it is looked for"


def test_the_documented_table_is_what_the_command_prints() -> None:
    result = CliRunner().invoke(qconf, ["synth", "--preset", "cray-xc40", "--table"])
    assert result.exit_code == 0
    assert result.output in (ROOT / "docs" / "reference" / "workload.md").read_text()


def test_command_writes_months_and_names_them(tmp_path: Path) -> None:
    result = CliRunner().invoke(qconf, ["synth", "--months", "1", "--seed", "4", "-o", str(tmp_path)])
    assert result.exit_code == 0
    path = tmp_path / "cray-xc40-2015-07.csv.gz"
    assert result.output.strip() == str(path)
    expected = synth.generate_month("cray-xc40", 0, 4)
    pd.testing.assert_frame_equal(pd.read_csv(path), expected, check_dtype=False)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--preset", "stable", "-o", "x"],
        ["--preset", "stable", "--jobs", "5", "--cores", "64"],
        ["--preset", "stable", "--jobs", "5", "--cores", "64", "-o", "x", "--table"],
        ["--preset", "stable", "--jobs", "5", "--cores", "64", "--months", "2", "-o", "x"],
        ["--jobs", "5", "-o", "x"],
        ["--months", "0", "-o", "x"],
    ],
)
def test_command_refuses_what_does_not_belong_together(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(qconf, ["synth", *arguments]).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_a_load_out_of_reach_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    synth.generate_month("cray-xc40", 0, offered_load=1.1)  # within reach of July, not of January
    with pytest.raises(SystemExit) as stop:
        main(["synth", "--load", "1.1", "-o", str(tmp_path / "out")])
    assert stop.value.code == 1
    assert "Ask for less than" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.gz"))


@pytest.mark.parametrize(("n", "cores", "load"), [(20_000, 1024, 0.7), (100_000, 35232, 0.9), (10, 1, 0.5)])
def test_stable_stream_offers_its_load(n: int, cores: int, load: float) -> None:
    workload = stable_workload(n, cores, load, seed=2)
    assert len(workload) == n
    span = int(workload.submit[-1]) - 1_577_836_800
    assert int(workload.cores @ workload.effective_runtime) / (cores * span) == pytest.approx(load, rel=1e-3)
    assert (np.diff(workload.submit) >= 0).all()
    assert (workload.runtime <= workload.walltime).all()
    assert workload.cores.max() <= max(cores // 4, 1)
    assert (np.bitwise_count(workload.cores) == 1).all()


def test_stable_stream_is_as_busy_at_its_end_as_at_its_start() -> None:
    workload = stable_workload(200_000, 4096, seed=0)
    quarter = np.searchsorted(workload.submit, np.quantile(workload.submit[[0, -1]], [0.25, 0.5, 0.75]))
    area = [int(part.sum()) for part in np.split(workload.cores * workload.runtime, quarter)]
    assert max(area) < 1.05 * min(area)


def test_stable_stream_is_deterministic_and_has_a_history(tmp_path: Path) -> None:
    first, again = stable_workload(1000, 256, seed=9), stable_workload(1000, 256, seed=9)
    pd.testing.assert_frame_equal(as_history(first), as_history(again))
    assert not np.array_equal(first.submit, stable_workload(1000, 256, seed=10).submit)
    assert tuple(as_history(first).columns) == synth.COLUMNS
    arguments = ["synth", "--preset", "stable", "--jobs", "1000", "--cores", "256", "--seed", "9", "-o", str(tmp_path)]
    assert CliRunner().invoke(qconf, arguments).exit_code == 0
    frame = pd.read_csv(tmp_path / "stable-1000.csv.gz")
    pd.testing.assert_frame_equal(frame, as_history(first), check_dtype=False)


@pytest.mark.parametrize(
    "wrong", [{"n": 0}, {"cores": 0}, {"load": 0.0}, {"load": float("nan")}, {"load": 1e-9}, {"seed": -1}]
)
def test_stable_stream_refuses_nonsense(wrong: dict[str, float]) -> None:
    with pytest.raises(QconfError):
        stable_workload(**({"n": 10, "cores": 8, "load": 0.5, "seed": 0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_other_january_falls_as_drastically_as_the_paper_says(seed) -> None:
    hours = {
        name: synth.month_table(name, 8, seed).pipe(lambda table: table["Mcore-h"] * table["medium %"])
        for name in ("cray-xc40", "cray-xc40-fall")
    }
    fallen = {name: of["2016-01"] / of["2015-12"] - 1 for name, of in hours.items()}
    assert fallen["cray-xc40"] == pytest.approx(-0.19, abs=0.01)
    assert fallen["cray-xc40-fall"] == pytest.approx(-0.46, abs=0.01)
    others = [month for month in hours["cray-xc40"].index if month != "2016-01"]
    assert hours["cray-xc40"][others].equals(hours["cray-xc40-fall"][others])


#: Jobs, cores, most jobs that wait at a time under EASY in one list, and their shapes at that instant, as bounds.
LARGE = {
    "ricc": (130_000, 8192, (20_000, 30_000), (25, 60)),
    "curie": (38_000, 93_312, (1500, 4000), (20, 60)),
    "curie-4": (38_000, 93_312, (300, 2500), (10, 60)),
    "metacentrum": (24_000, 806, (500, 6000), (20, 80)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_months_have_deep_queues_of_few_shapes(name: str) -> None:
    count, cores, depth, shapes = LARGE[name]
    frame = synth.generate(name, 1)
    assert (len(frame), synth.PRESETS[name].cores) == (count, cores)
    assert frame["cores"].max() <= cores
    columns = (frame[each].to_numpy() for each in ("submit", "cores", "runtime", "walltime"))
    schedule = simulate(Workload(*columns), System(cores, [Queue()]))
    starts, ordered = np.sort(schedule.start), np.sort(schedule.submit)
    waiting = np.arange(1, count + 1) - np.searchsorted(starts, ordered, side="right")
    assert depth[0] <= waiting.max() <= depth[1]
    instant = ordered[np.argmax(waiting)]
    deepest = frame[(schedule.submit <= instant) & (schedule.start > instant)]
    assert shapes[0] <= len(deepest[["cores", "walltime", "queue"]].drop_duplicates()) <= shapes[1]
