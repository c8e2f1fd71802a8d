"""The pages that a browser looks at: each with all that it can have, of real numbers."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from parsim import simulate
from qconf.backtest import backtest, compare
from qconf.config import load
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.export import exporter
from qconf.fidelity.calibrate import calibrate
from qconf.fidelity.grade import Grade
from qconf.fidelity.verify import verify
from qconf.history import clean, read
from qconf.prediction.loading import loading
from qconf.prediction.results import predict
from qconf.recommend import Evaluated
from qconf.recommend.doubts import Doubt
from qconf.recommend.fidelity import Day, Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report.backtest import render_backtest
from qconf.report.exported import Exported
from qconf.report.fidelity import render_fidelity
from qconf.report.figures import backtest_figures, figures
from qconf.report.prediction import Loaded, render_prediction
from qconf.report.recorded import Gain, Promise
from qconf.report.tune_page import render
from qconf.snapshot import Closure, Job, Snapshot
from tests.qconf.fidelity import logs
from tests.qconf.report import example, small

HOSTILE = "<img/src=x/onerror=hacked=1>\u202e'\"]"
DAY = 86400


@lru_cache(maxsize=1)
def change():
    """The page of a recommendation with all that a page can have."""
    found = example.recommendation()
    rungs = tuple(Rung(name, row) for name, row in zip(("order", "policy", "boundaries"), found.rows[1:4], strict=True))
    long = replace(found.row, title="the order, and reservations after 24h, without any of the site's policy")
    rungs = (*rungs, Rung("order", found.row, small.bootstrap(0.2, 0.1, 0.3)), Rung("reservation delay", long))
    found = replace(found, winner=long.name, config=long.config)
    days = tuple(
        Day(name, f"2016-02-{day:02}", 3 * day, 900.0 * day, 400.0 * day + 900 * i)
        for i, name in enumerate(found.base.names)
        for day in range(1, 25)
    )
    near = Fidelity(100, 36 * 3600, 3600, 6 * 3600, 3600, 0.12, days, Grade("E", 0.2, 3.0, 90, 12))
    doubts = (Doubt("queue medium never drains", "a machine that is larger", "qconf inspect LOG"),)
    found = replace(found, ladder=rungs, near=near, doubts=doubts, verdict="CHECK")
    exported = Exported.of(found, exporter("pbs")())
    inputs = [{"what": "history", "name": "log.csv", "sha256": "0" * 64}]
    return render(
        found,
        figures(found, example.history()),
        history=example.history(),
        warnings=["A warning of some length, so that it is seen how it breaks into lines on a narrow screen."],
        exported=exported,
        versions={"qconf": "1", "numpy": "2"},
        inputs=inputs,
    )


@lru_cache(maxsize=1)
def keep():
    found = example.recommendation("KEEP")
    return render(found, figures(found, example.history()), history=example.history())


@lru_cache(maxsize=1)
def many_periods():
    history = example.history()
    found = backtest(history, load(example.SITE), period="7d", fewest=20, strategies=["current", "lxf-easy", "pp"])
    return render_backtest(found, history, backtest_figures(found, history), ["a warning"])


@lru_cache(maxsize=1)
def one_period():
    base, january = load(example.SITE), example.SAMPLE.with_name("cray-xc40-2016-01.csv.gz")
    first, later = clean(read([january]), base), example.history()
    found = compare(first, later, base, strategies=["current", "lxf-easy", "pp"])
    history = first.joined(later)
    return render_backtest(found, history, backtest_figures(found, history))


def present(text=""):
    """A log, and what a snapshot shows of the day after it: what runs, what waits, what is held, a downtime."""
    base, w = logs.site(), logs.workload()
    start = simulate(w, base.system()).start
    now = 8 * DAY
    past = logs.history(w.take(w.submit < now), start[w.submit < now], base)
    found = [Job("17", f"ann{text}", "", "long", 8, 7200, now - 60, held="on hold")]
    for row in np.flatnonzero((w.submit <= now) & (now < start + w.runtime)).tolist():
        begun = int(start[row]) if start[row] <= now else None
        about = (f"{row}{text}", f"u{w.user[row]}{text}", "", base.names[w.queue[row]], int(w.cores[row]))
        found.append(Job(*about, int(w.walltime[row]), int(w.submit[row]), begun))
    closures = (Closure("maintenance", now + DAY, now + DAY + 28800, 16),)
    return past, base, Snapshot(now, tuple(found), 64, closures)


@lru_cache(maxsize=2)
def ahead(text=""):
    """The page of a prediction that has intervals and a recommendation."""
    past, base, snapshot = present(text)
    found = predict(snapshot, base, history=past, runs=30, instants=3)
    after = logs.site(order="sjf")
    promise = Promise(
        run="reports/january", sha256="", verdict="CHANGE", winner="sjf", title="the order alone",
        span=(700, 0, 8 * DAY), objective="mean-wait", before=base, after=after, gain=Gain(0.3, 0.3, 0.2, 0.4),
    )  # fmt: skip
    then = loading(snapshot, base, after, past, promise.objective, runs=5, days=3)
    return render_prediction(found, "UTC", Loaded(promise, then))


@lru_cache(maxsize=1)
def calibrated():
    """The page of a calibration."""
    log = logs.written(logs.site(order="sjf"))
    found = calibrate(log, logs.site(), lengths=(4 * 3600, 12 * 3600), count=24, parts=("order", "backfill"))
    return render_fidelity(found, ["a warning"])


@lru_cache(maxsize=1)
def near():
    """The page of a verification."""
    log = logs.written(logs.site(order="sjf"))
    return render_fidelity(verify(log, logs.site(), lengths=(4 * 3600, 12 * 3600), count=24))


@lru_cache(maxsize=1)
def hostile(folder):
    """The page of jobs whose users, queues, ids and machine try to be more than text."""
    queues = (HOSTILE.replace("\u202e", ""), "</script><script>hacked=2</script>")
    found = small.recommendation(names=queues, machine=queues[0], text=HOSTILE)
    rows = [
        {"job_id": f"{HOSTILE}{i}", "submit": 1454284800 + 600 * i, "runtime": 5000, "walltime": 7000, "cores": 60}
        | {"queue": queues[i % 2], "user": f"=cmd()|{HOSTILE}"}
        for i in range(200)
    ]
    pd.DataFrame(rows).to_csv(folder / "log.csv", index=False)
    open_to_all = {"cores": (1, 128), "walltime": (0, 86400), "max_run": None, "max_user_run": None}
    base = small.site(queues).replace(
        queues=tuple(queue.model_copy(update=open_to_all) for queue in small.site(queues).queues)
    )
    history = clean(read([folder / "log.csv"]), base)
    period = Period.of(history, base)
    outcome = Outcome(period, period.simulate(base))
    found = replace(found, present=Evaluated(base, outcome), changed=Evaluated(base, outcome))
    return render(found, figures(found, history), history=history, warnings=[HOSTILE])
