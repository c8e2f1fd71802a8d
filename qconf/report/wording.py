"""Formats of numbers, spans and times, the same in all tables and reports."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from parsim.model.system import ORDERS
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import FidelityConfig, PoolConfig, QueueConfig, ShortpoolConfig, SiteConfig, format_duration
from qconf.config.models import DAYS
from qconf.history.times import zone
from qconf.text import grouped

if TYPE_CHECKING:
    from parsim import Reason
    from qconf.evaluation.bootstrap import BootstrapResult
    from qconf.fidelity.grade import Grade
    from qconf.recommend.fidelity import Fidelity
    from qconf.recommend.last import Gain

ABSENT = "-"
UNUSED = "not used"
GIB = 1024  # MiB
OF_NODES = {"gpus": "GPUs", "memory": "MiB"}  #: units of limits on resources of nodes


def queue_label(name: str) -> str:
    """Return a queue's name; a queue named ``all`` is distinguished from the total."""
    return "all (queue)" if name == "all" else name


def fidelity_text(near: Fidelity) -> str:
    """Return sentences on recorded and simulated waits, with the grade."""
    text = (
        f"According to the log, the {near.jobs} jobs with a recorded start waited {near.real_mean / 3600:.2f} h on "
        f"average (median {near.real_median / 3600:.2f} h); simulated under the current configuration they wait "
        f"{near.mean / 3600:.2f} h (median {near.median / 3600:.2f} h)"
    )
    text += f", rank correlation {near.correlation:.2f}." if math.isfinite(near.correlation) else "."
    if near.grade is None:
        return f"{text} Too few jobs start in windows of the log to grade that."
    text += f" {grade_text(near.grade)}"
    if near.doubtful:
        text += (
            " The site may have had another configuration, or something else held the jobs (outages, reservations, "
            "limits of users or projects): qconf fidelity shows which jobs are farthest off, and with --calibrate "
            "searches for what was in force. Gains are measured against the simulation."
        )
    return text


def grade_text(found: Grade) -> str:
    """Return a sentence on a fidelity grade and its agreement."""
    windows = f"{found.windows} window{'s' * (found.windows != 1)}"
    waiting = "no job waits there, recorded or simulated"
    if math.isfinite(found.agreement):
        waiting = f"{100 * found.agreement:.0f} % of the waiting there is the same"
    return f"Fidelity grade {found.letter}: simulated from what ran at the begin of {windows}, {waiting}."


def carried_text(found: FidelityConfig) -> str:
    """Return a sentence on the grade that a configuration carries."""
    return (
        f"The configuration carries fidelity grade {found.grade}: {100 * found.agreement:.0f} % of the waiting in "
        f"{found.windows} windows that it was not calibrated on is as the log recorded."
    )


def number(value: float, digits: int = 2) -> str:
    """Format a number with `digits` decimals, none from 1000 on."""
    if not math.isfinite(value):
        return ABSENT
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:.0f}"


def hours(seconds: float) -> str:
    """Format seconds as hours."""
    return number(seconds / 3600)


def longest_text(before: float, after: float) -> str:
    """Format the longest wait before and after, given in seconds, in hours."""
    return f"longest wait {hours(before)} -> {hours(after)} h"


def count(value: float) -> str:
    """Format a whole number in groups of three digits, without line breaks between them."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}") if math.isfinite(value) else ABSENT


def gain_text(gain: float | None) -> str:
    """Format a gain in per cent, like ``+20.1``; plus is better than the current configuration."""
    return ABSENT if gain is None or not math.isfinite(gain) else f"{100 * gain:+.1f}"


def interval_text(found: BootstrapResult | Gain | None, *, short: bool = False) -> str:
    """Format an expected gain and its 90 % interval, per cent, like ``+20.1 (+12.0 to +27.9)``.

    If `short`, the interval is in whole per cents: ``+20.1 (+12 to +28)``.
    """
    if found is None:
        return ABSENT
    low, high = (f"{100 * gain + 0.0:+.0f}" if short else gain_text(gain) for gain in (found.low, found.high))
    return f"{gain_text(found.expected)} ({low} to {high})"


def sure_text(found: BootstrapResult) -> str:
    """Return how many resamples gain, and whether the gain may be chance."""
    gained = f"{100 * found.sure:.0f} % of the resamples gain"
    return gained if found.certain else f"{gained}, it may be chance"


def date(second: int, timezone: str) -> str:
    """Format a Unix second as local date and time."""
    return datetime.fromtimestamp(second, zone(timezone)).strftime("%Y-%m-%d %H:%M")


def reasons_in_words(reasons: Iterable[Reason], date_of: Callable[[int], str]) -> Iterator[tuple[str, str]]:
    """Yield (when, text) of each reason why a job waited, with dates for the seconds of a history."""
    for reason in reasons:
        until = "" if reason.begin == reason.end else f" to {date_of(reason.end)}"
        text = re.sub(r"(?<=from )\d+(?= on\b)", lambda second: date_of(int(second[0])), reason.text)
        yield f"{date_of(reason.begin)}{until}", text


def queue_facts(queue: QueueConfig, config: SiteConfig) -> dict[str, str]:
    """Describe a queue of `config`, a short text for each property; `UNUSED` for one without effect."""
    reserved = config.mode != "shared" and any(each.reservation for each in config.queues)
    pooled = config.mode == "hybrid" and config.pool is not None and config.pool.starving_first
    within = "eligible_time >=" in config.order  # a formula ignores starvation periods, but may contain its own
    starves = config.order in ORDERS or within or reserved or pooled
    if queue.reservation:
        size = "by reservation"
    else:
        of_types = ", ".join(f"{count} {name}" for name, count in queue.partition_nodes.items() if count)
        size = f"{queue.partition} ({of_types})" if of_types else str(queue.partition)
        size = size if config.mode != "shared" else "whole machine"
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
    of_queue = (each.max_run_resources for each in config.throttles if each.is_of_queue(queue.name))
    limits += [f"{most} {OF_NODES.get(name, name)}" for each in of_queue for name, most in each.items()]
    low, high = queue.cores
    starving = ABSENT if queue.starvation is None else format_duration(queue.starvation)
    nodes = {"nodes": "all" if queue.nodes is None else ", ".join(queue.nodes)} if config.nodes else {}
    if queue.exclusive:
        nodes["nodes"] += ", each job alone"
    return {
        "cores": f"{low} and more" if high == MAX_CORES else f"{low} to {high}",
        "walltime": _walltime(*queue.walltime),
        "priority": f"{queue.priority:g}" if config.uses_priority else UNUSED,
        "runs on (cores)": size,
        "starving after": starving if starves or starving == ABSENT else UNUSED,
        "running at most": ", ".join(limits) or ABSENT,
        **nodes,
    }


def site_facts(config: SiteConfig) -> dict[str, str]:
    """Describe the settings that hold for all queues."""
    wait = config.reservation_delay
    delay = f", a reservation after {format_duration(wait)}" if wait and config.backfill else ""
    alone = [each.name for each in config.nodes if each.exclusive]
    return {
        "mode": config.mode,
        "order of waiting jobs": config.order,
        "backfill": _backfill(config) + delay,
        "common pool": _pool(config.pool, config) if config.mode == "hybrid" and config.pool else ABSENT,
        **({"nodes that each job has alone": ", ".join(alone)} if alone else {}),
        **({"shortpools": "; ".join(map(_shortpool, config.shortpools))} if config.shortpools else {}),
    }


def _backfill(config: SiteConfig) -> str:
    if not config.backfill:
        return "none"
    return "what fits, nothing is reserved" if config.reserves_nothing else "EASY"


def reservations(config: SiteConfig) -> str:
    """Return when cores are reserved for a job that does not fit."""
    if config.reserves_nothing:
        return "nothing is reserved for a job that does not fit, however long it waits"
    if not config.reservation_delay:
        return "cores are reserved at once for the first job that does not fit"
    return (
        "cores are reserved for a job that does not fit only when it has waited "
        f"{format_duration(config.reservation_delay)}; until then it delays no other job"
    )


def _pool(pool: PoolConfig, config: SiteConfig) -> str:
    first = ", starving first" if pool.starving_first else ""
    entered = f"above priority factor {config.threshold:g}" if config.threshold else "entered at once"
    return f"{pool.cores} cores, {entered}, placement {pool.placement}, entry {pool.entry}{first}"


def _shortpool(each: ShortpoolConfig) -> str:
    always = each.begin == each.end == "00:00" and each.days == DAYS
    hours = "always" if always else f"{', '.join(each.days)} {each.begin} to {each.end}"
    nodes = " and ".join(f"{count} nodes of {name}" for name, count in each.types.items())
    return f"{nodes or f'{each.cores} cores'} for jobs up to {format_duration(each.walltime)}, {hours}"


def _walltime(above: int, upto: int) -> str:
    if upto == MAX_DURATION:
        return f"above {format_duration(above)}" if above else "any"
    return f"{format_duration(above)} to {format_duration(upto)}" if above else f"up to {format_duration(upto)}"


def notes(logs: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]) -> Iterator[tuple[str, str]]:
    """Yield (strategy, note), each once, from logs of strategies: warnings about the history or a setting."""
    for name, decisions in logs:
        for text, _ in merged(dict.fromkeys(note for step in decisions for note in step.get("notes", ()))):
            yield name, text


def merged(texts: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Merge texts that differ in one number only; return each merged text with its originals.

    ``raised to 0.34`` and ``raised to 0.41`` become ``raised to 0.34 ... 0.41``, the least and the greatest number.
    """
    alike = grouped((tuple(_NUMBER.split(text)), text) for text in texts)
    return [each for texts_alike in alike.values() for each in _merged_alike(texts_alike)]


#: A separate number, not one in a name such as ``small72``.
_NUMBER = re.compile(r"(?<![\w.-])[0-9]+(?:\.[0-9]+)?(?![\w-]|\.[0-9])")


def _merged_alike(texts: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Merge texts that differ only in numbers, along the number that leaves the fewest texts."""
    numbers = {text: _NUMBER.findall(text) for text in texts}
    ways = [
        (place, grouped(((*found[:place], *found[place + 1 :]), text) for text, found in numbers.items()))
        for place in range(len(numbers[texts[0]]))
    ]
    place, together = min(ways, key=lambda way: len(way[1]), default=(0, {(): texts}))
    for each in together.values():
        if len(each) == 1:
            yield each[0], each
            continue
        found = sorted((numbers[text][place] for text in each), key=float)
        first = list(_NUMBER.finditer(each[0]))[place]
        yield f"{each[0][: first.start()]}{found[0]} ... {found[-1]}{each[0][first.end() :]}", each


def value_text(value: Any) -> str:  # noqa: ANN401 - whatever a strategy noted down
    """Format a value of a strategy's log: numbers short, lists and dicts on one line, nothing as -."""
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
