"""Numbers, spans and times as people read them; the same everywhere in tables and reports."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

from parsim.system import ORDERS
from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import PoolConfig, QueueConfig, SiteConfig, format_duration
from qconf.history.times import zone
from qconf.strategies.auto.orders import general

if TYPE_CHECKING:
    from qconf.evaluation.bootstrap import BootstrapResult
    from qconf.recommend.fidelity import Fidelity

ABSENT = "-"
UNUSED = "not used"


def queue_label(name: str) -> str:
    """Tell a queue of the name ``all`` from the whole."""
    return "all (queue)" if name == "all" else name


def fidelity_text(near: Fidelity) -> str:
    """Say how near the simulated present is to what happened, in two sentences or three."""
    text = (
        f"According to the log, the {near.jobs} jobs with a recorded start waited {near.real_mean / 3600:.2f} h on "
        f"average (median {near.real_median / 3600:.2f} h); simulated under the current configuration they wait "
        f"{near.mean / 3600:.2f} h (median {near.median / 3600:.2f} h)"
    )
    text += f", rank correlation {near.correlation:.2f}." if math.isfinite(near.correlation) else "."
    if near.far:
        text += (
            " These are far apart: the site may have had another configuration, or something else held the jobs "
            "(outages, reservations, limits of users or projects). Gains are measured against the simulation."
        )
    return text


def hours(seconds: float) -> str:
    """Write seconds as hours with two decimals, fewer from 1000 h on."""
    if not math.isfinite(seconds):
        return ABSENT
    value = seconds / 3600
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def number(value: float) -> str:
    """Write a number with two decimals, fewer from 1000 on."""
    if not math.isfinite(value):
        return ABSENT
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"


def percent(share: float) -> str:
    """Write a share in 0..1 as a percentage without its sign."""
    return f"{100 * share:.1f}" if math.isfinite(share) else ABSENT


def count(value: float) -> str:
    """Write a whole number in groups of three digits that no line break tears apart."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}") if math.isfinite(value) else ABSENT


def gain_text(gain: float | None) -> str:
    """Write a gain in per cent like ``+20.1``; plus is better than the current configuration."""
    return ABSENT if gain is None or not math.isfinite(gain) else f"{100 * gain:+.1f}"


def expected_text(evidence: BootstrapResult | None) -> str:
    """Write the gain on resampled days and its 90 % interval, per cent, like ``+20.1 (+12.0 to +27.9)``."""
    if evidence is None:
        return ABSENT
    return f"{gain_text(evidence.expected)} ({gain_text(evidence.low)} to {gain_text(evidence.high)})"


def date(second: int, timezone: str) -> str:
    """Write a Unix second as local date and time."""
    return datetime.fromtimestamp(second, zone(timezone)).strftime("%Y-%m-%d %H:%M")


def queue_facts(queue: QueueConfig, config: SiteConfig) -> dict[str, str]:
    """Say what a queue of `config` is, one short text per property; what a formula makes of no account is `UNUSED`."""
    formula = config.order not in ORDERS
    patient = formula and not (config.mode != "shared" and any(each.reservation for each in config.queues))
    patient = patient and not (config.mode == "hybrid" and config.pool is not None and config.pool.starving_first)
    if queue.reservation:
        size = "by reservation"
    else:
        size = str(queue.partition) if config.mode != "shared" else "whole machine"
    limits = [
        f"{limit} {what}{'s' * (limit != 1)}{whose}"
        for limit, what, whose in (
            (queue.max_run, "job", ""),
            (queue.max_run_cores, "core", ""),
            (queue.max_user_run, "job", " a user"),
            (queue.max_user_cores, "core", " a user"),
        )
        if limit is not None
    ]
    starving = ABSENT if queue.starvation is None else format_duration(queue.starvation)
    return {
        "cores": _range(*queue.cores, unlimited=MAX_CORES),
        "walltime": _walltime(*queue.walltime),
        "priority": f"{queue.priority:g}" if config.uses_priority else UNUSED,
        "runs on (cores)": size,
        "starving after": UNUSED if patient and starving != ABSENT else starving,
        "running at most": ", ".join(limits) or ABSENT,
    }


def site_facts(config: SiteConfig) -> dict[str, str]:
    """Say what holds for all queues."""
    return {
        "mode": config.mode,
        "order of waiting jobs": config.order,
        "backfill": _backfill(config),
        "common pool": _pool(config.pool, config) if config.mode == "hybrid" and config.pool else ABSENT,
    }


def order_meaning(config: SiteConfig) -> str:
    """Say what `auto`'s general order does; empty of any other, of which the formula is all that is known."""
    if config.order.removeprefix("queue_priority * ") != general(config.machine.cores):
        return ""
    return (
        "short and narrow jobs first; on an eighth of the machine a job of 10 h counts twice when it has waited 15 h, "
        "one of 1 h after 2.4 h, and soon many times; a wider one sooner"
    )


def reservations(config: SiteConfig) -> str:
    """Say from when on a job that does not fit is waited for."""
    if not config.reservation_delay:
        return "cores are reserved at once for the first job that does not fit"
    return (
        f"cores are reserved for a job that does not fit only when it has waited {format_duration(config.reservation_delay)}; "
        "until then it blocks nobody"
    )


def _backfill(config: SiteConfig) -> str:
    if not config.backfill:
        return "none"
    return (
        f"EASY, a reservation after {format_duration(config.reservation_delay)}" if config.reservation_delay else "EASY"
    )


def _pool(pool: PoolConfig, config: SiteConfig) -> str:
    first = ", starving first" if pool.starving_first else ""
    return (
        f"{pool.cores} cores, from priority factor {config.threshold:g}, "
        f"placement {pool.placement}, entry {pool.entry}{first}"
    )


def _range(low: int, high: int, *, unlimited: int) -> str:
    return f"{low} and more" if high == unlimited else f"{low} to {high}"


def _walltime(above: int, upto: int) -> str:
    if upto == MAX_DURATION:
        return f"above {format_duration(above)}" if above else "any"
    return f"{format_duration(above)} to {format_duration(upto)}" if above else f"up to {format_duration(upto)}"


def value_text(value: Any) -> str:  # noqa: ANN401 - whatever a strategy noted down
    """Write a value of a decision: numbers short, lists and dicts on one line, nothing as -."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ABSENT
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(item)}" for key, item in value.items()) or ABSENT
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value)) or ABSENT
    return str(value)
