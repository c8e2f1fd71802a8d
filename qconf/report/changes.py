"""The differences between two configurations, fact by fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qconf.config import SiteConfig
from qconf.recommend import Recommendation
from qconf.report import wording
from qconf.report.formulas import order_in_words
from qconf.report.points import in_points


def pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each fact before and after, for a table; None on a side that lacks it."""
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys([*before, *after])
    ]


def site_pairs(base: SiteConfig, config: SiteConfig) -> list[dict[str, Any]]:
    """Return the facts that hold for all queues, before and after; `ABSENT` on a side that lacks one."""
    found = pairs(wording.site_facts(base), wording.site_facts(config))
    return [{name: wording.ABSENT if value is None else value for name, value in fact.items()} for fact in found]


def definitions(base: SiteConfig, config: SiteConfig) -> list[dict[str, Any]]:
    """Compare the queues of two configurations: for each its state, and each property before and after."""
    rows = []
    for name in dict.fromkeys([*base.names, *config.names]):
        old = wording.queue_facts(base.queue(name), base) if name in base.names else {}
        new = wording.queue_facts(config.queue(name), config) if name in config.names else {}
        state = "same" if old == new else ("removed" if not new else ("new" if not old else "changed"))
        rows.append({"name": name, "state": state, "facts": pairs(old, new)})
    return rows


def changes(recommendation: Recommendation) -> Iterator[tuple[str, str]]:
    """Yield ("all queues", changes) for the site, then (queue, changes) for each queue that differs."""
    base, config = recommendation.base, recommendation.config
    if everywhere := _changed(site_pairs(base, config)):
        yield "all queues", everywhere
    if config.order != base.order and (words := in_points(config) or order_in_words(config)):
        yield "all queues", f"the order in words: {words}"
    if wording.reservations(config) != wording.reservations(base):
        yield "all queues", wording.reservations(config)
    for queue in definitions(base, config):
        if queue["state"] in ("new", "removed"):
            facts = [f"{fact['name']} {fact['after']}" for fact in queue["facts"] if fact["after"] not in (None, "-")]
            yield queue["name"], ", ".join([queue["state"], *facts])
        elif queue["state"] == "changed":
            yield queue["name"], _changed(queue["facts"])
    for target in base.targets:
        if target.queue is not None and target.queue not in config.names:
            yield target.queue, "what targets want for it is left out: there is no such queue any more"


def _changed(facts: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"{fact['name']}: {fact['before']} -> {fact['after']}" for fact in facts if fact["before"] != fact["after"]
    )
