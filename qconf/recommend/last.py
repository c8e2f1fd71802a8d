"""The promise of an earlier run, and the gain realised on the jobs submitted since."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.holdout import WARMUP, Holdout
from qconf.evaluation.period import Period, UnroutableError
from qconf.evaluation.score import means, reduction
from qconf.history import Records, clean
from qconf.prediction.runtimes import with_estimates
from qconf.strategies import Proposal

Span = tuple[int, int, int]  #: jobs, first and last submit in Unix seconds


@dataclass(frozen=True)
class Gain:
    """The gain that a run promised: on its test period, and expected with its interval over the resamples."""

    gain: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Promise:
    """The recommendation of an earlier run."""

    run: str  #: the directory, for messages
    sha256: str  #: hash of its run.json
    verdict: str
    winner: str
    title: str  #: the change in a few words
    objective: str
    span: Span  #: span of its history
    before: SiteConfig  #: the configuration in force then
    after: SiteConfig  #: the recommended configuration
    gain: Gain | None  #: None for KEEP


@dataclass(frozen=True)
class Realised:
    """A promise, evaluated on later jobs."""

    promise: Promise
    span: Span  #: span of the later jobs
    before: Summary | None = None  #: under the configuration in force then; None if nothing was promised
    after: Summary | None = None  #: under the recommended one; None if it has no queue for some job
    gain: float | None = None
    not_evaluated: str = ""  #: why a promised gain was not evaluated
    loaded: bool | None = None  #: whether the recommended configuration is in force now; None if unknown
    timezone: str = "UTC"  #: time zone of dates

    @property
    def inside(self) -> bool | None:
        """Whether the realised gain is in the promised interval; None if one of them is missing."""
        promised = self.promise.gain
        return None if promised is None or self.gain is None else promised.low <= self.gain <= promised.high

    def record(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        promise, promised = self.promise, self.promise.gain
        waits = {"before": self.before, "after": self.after}
        return {
            **{name: getattr(promise, name) for name in ("sha256", "verdict", "winner", "title", "objective")},
            "span": dict(zip(_SPAN, promise.span, strict=True)),
            "promised": None if promised is None else vars(promised),
            "realised": self.gain,
            "realised_on": dict(zip(_SPAN, self.span, strict=True)),
            "inside": self.inside,
            "not_evaluated": self.not_evaluated,
            "mean_wait": {name: None if each is None else float(means(each)[0]) for name, each in waits.items()},
            "longest_wait": {name: None if each is None else each["max_wait"] for name, each in waits.items()},
            "loaded": self.loaded,
        }


_SPAN = ("jobs", "first_submit", "last_submit")
#: Fields that are not simulated, or are equal in both configurations.
_BESIDE: dict[str, Any] = {"policy": (), "fixed": (), "targets": (), "strategies": {}}


def realised(promise: Promise, records: Records, period: tuple[int, int], now: SiteConfig | None) -> Realised:
    """Evaluate a promise on the jobs of a log submitted in a period (both ends included), in seconds of the log.

    Both configurations get the same jobs, cleaned with the configuration in force at the promise, after a warm-up of
    earlier jobs if the log has them. `now` is the configuration in force today, if known. Raises InputError if the
    machine is another one, or the promise was trained on these jobs.
    """
    if now is not None and now.machine != promise.before.machine:
        was, is_ = (f"{each.name}, {each.cores} cores" for each in (promise.before.machine, now.machine))
        if was == is_:
            was, is_ = (f"nodes of {each.cores_per_node} cores" for each in (promise.before.machine, now.machine))
        raise _incomparable(promise, f"is of another machine ({was}; this one: {is_})")
    log = with_estimates(clean(records, promise.before), promise.before, promise.after)
    jobs = log.between(period[0], period[1] + 1)
    if not len(jobs):
        raise _incomparable(promise, "has no queue for any job of this log")
    first, last = (log.epoch + second for second in jobs.span)
    if first <= promise.span[2]:
        dates = (log.date(second - log.epoch) for second in (promise.span[2], first))
        raise _incomparable(promise, "rests on jobs until {}, and this log begins at {}".format(*dates))
    loaded = None if now is None else _loaded(promise, now)
    found = Realised(promise, (len(jobs), first, last), loaded=loaded, timezone=log.timezone)
    if promise.gain is None:
        return found
    test = Holdout.of(Period.of(log, promise.before), jobs.span[0], jobs.span[1] + 1, WARMUP)
    before = test.evaluate(Proposal(promise.before))
    found = replace(found, before=before)
    try:
        after = test.evaluate(Proposal(promise.after))
    except UnroutableError as error:
        return replace(found, not_evaluated=str(error))
    return replace(found, after=after, gain=reduction(after, before, promise.objective))


def _incomparable(promise: Promise, why: str) -> InputError:
    fix = "give a run of the same machine on the months before this log"
    return InputError(f"cannot be compared: it {why}", file=promise.run, field="--last", fix=fix)


def _loaded(promise: Promise, now: SiteConfig) -> bool | None:
    """Whether the recommended configuration is in force; None if neither it nor the one before is."""
    before, after, today = (each.replace(**_BESIDE) for each in (promise.before, promise.after, now))
    if before == after:
        return None  # nothing was to be loaded
    return True if today == after else False if today == before else None
