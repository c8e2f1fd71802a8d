"""The story of the partitions: from proportional sizes, by the program, splits and merges, to the pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from qconf.recommend import Recommendation
from qconf.report.wording import hours

Step = Mapping[str, Any]
FARTHEST = ("hybrid", "dqr", "dp-nlp")  #: the story is that of the first of these with a log
ALL = 2.0  #: default sum of the epochs' weights, if the log has none


@dataclass(frozen=True)
class Chapter:
    """One stage: its decision, and the mean wait after it (seconds, mean over the epochs)."""

    title: str
    text: str
    wait: float | None = None
    rejected: tuple[float, ...] = ()  #: waits of rejected attempts


@dataclass(frozen=True)
class Story:
    """The stages of a strategy on its training set, and the wait under the current configuration."""

    strategy: str
    chapters: tuple[Chapter, ...]
    current: float | None


def story(found: Recommendation) -> Story | None:
    """Return the story of the strategy that changes partitions most; None if there is none."""
    logs = {row.name: row.decisions for row in found.rows if row.decisions}
    name = next((each for each in FARTHEST if any(s.get("step") == "decide" for s in logs.get(each, ()))), None)
    if name is None:
        return None
    steps = logs[name]
    fitted = [step for step in steps if step.get("step") == "surrogate" and step.get("weight")]
    weights = sum({step["epoch"]: step["weight"] for step in fitted}.values()) or ALL
    chapters = tuple(_chapters(steps, weights))
    present = next((s["current_weighted_wait"] for s in reversed(steps) if s.get("current_weighted_wait")), None)
    return Story(name, chapters, None if present is None else present / weights)


def _chapters(steps: Sequence[Step], weights: float) -> Iterator[Chapter]:
    wait = 0.0
    for kind, members in groupby(steps, key=lambda step: step.get("step")):
        same = list(members)
        if kind == "decide":
            step = same[0]
            pp = step["pp_weighted_wait"] / weights
            if not wait:
                yield Chapter("in proportion", f"Sizes in proportion to core-hours: {hours(pp)} h.", pp)
            wait = step["weighted_wait"] / weights
            text = f"The weighted program, {step['tried']} divisions simulated: {hours(wait)} h."
            yield Chapter("program", text, wait)
        elif kind == "neighbours" and same[0].get("kept"):
            wait = same[0]["weighted_wait"] / weights
            yield Chapter("neighbours", f"Cores moved between queues around it: {hours(wait)} h.", wait)
        elif kind in ("split", "merge"):
            for chapter in _changes(kind, same, wait, weights):
                wait = chapter.wait or wait
                yield chapter
        elif kind == "pool search":
            yield _searched(same, weights)
        elif kind == "carve":
            wait = same[-1]["weighted_wait"] / weights
            path = ", ".join(f"{step['pool']} cores {hours(step['weighted_wait'] / weights)} h" for step in same)
            yield Chapter("carving", f"A pool carved out chunk by chunk: {path}.", wait)
        elif kind == "stop":
            queues = ", ".join(str(step.get("queue")) for step in same)
            yield Chapter("carving stops", f"The carving stops at {queues}: {same[-1].get('why', '')}.")
        elif kind == "pool":
            step = same[-1]
            wait = step["weighted_wait"] / weights
            text = f"A pool of {step['cores']} cores beside {', '.join(step['partitions'])}: {hours(wait)} h."
            yield Chapter("pool", text, wait)
        elif kind == "no pool":
            yield Chapter("no pool", f"The pool is left out: {same[-1].get('why', '')}.")


def _changes(kind: str, steps: Sequence[Step], wait: float, weights: float) -> Iterator[Chapter]:
    """Yield a chapter for each kept split or merge, and one for the rejected ones after the last."""
    rejected: list[float] = []
    tried = 0
    for step in steps:
        tried += 1
        measured = step.get("weighted_wait") is not None
        now = step["weighted_wait"] / weights if measured else wait
        if not step.get("kept"):
            rejected += [now] if measured else []
            continue
        into = " and ".join(step.get("into") or ())
        if kind == "split":
            text = f"Split {step.get('queue')} by {step.get('by')} at {step.get('at')}"
        else:
            text = f"Merged {step.get('queues')}, {step.get('at')}"
        text += f", into {into} cores: {hours(wait)} -> {hours(now)} h."
        wait = now
        yield Chapter(f"{kind} {step.get('queue') or into}", text, wait, tuple(rejected))
        rejected, tried = [], 0
    if tried:
        best = f", the best of them {hours(min(rejected))} h" if rejected else ", none of them possible"
        further, several = "further " if tried < len(steps) else "", "s" if tried > 1 else ""
        text = f"{tried} {further}{kind}{several} tried and not kept{best}."
        yield Chapter(f"{kind}s in vain", text, None, tuple(rejected))


def _searched(steps: Sequence[Step], weights: float) -> Chapter:
    texts = []
    for step in steps:
        found = "no better than none"
        if step.get("kept"):
            found = f"best {step['pool']} cores, {hours(step['weighted_wait'] / weights)} h"
        texts.append(
            f"with threshold {step['tau']:g}, {step['divisions']} pools simulated, {step['left_out']} of them left out "
            f"since a queue would wait too long: {found}"
        )
    text = "; ".join(texts)
    return Chapter("pool search", f"{text[0].upper()}{text[1:]}.")
