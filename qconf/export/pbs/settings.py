"""The lines of sched_config that a configuration needs: those in which it differs from what runs now."""

from __future__ import annotations

from parsim.model.fairshare import FAIRSHARE
from qconf.config import SiteConfig
from qconf.export.pbs import fairshare
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.priorities import are_several

Settings = dict[str, str | None]  #: what each is to be; None, it is taken away

#: What PBS takes for a line that is not there.
_SHIPPED = {"by_queue": "true", "preemptive_sched": "true"} | dict.fromkeys(
    ("round_robin", "fair_share", "strict_ordering", "help_starving_jobs"), "false"
)


def of_order(config: SiteConfig) -> Settings:
    """Return the lines that the order of the waiting list needs."""
    fair = config.order == FAIRSHARE
    return {
        "job_sort_key": None,
        "by_queue": f"{fair and are_several(config.queues)}",
        "round_robin": "False",
        "fair_share": f"{fair}".lower(),
        **fairshare.settings(config),
    }


def of_backfilling(config: SiteConfig) -> Settings:
    """Return the line without which nothing is reserved for jobs that wait."""
    return {"strict_ordering": f"{not config.reserves_nothing}"}


def of_starvation(scheduler: Scheduler | None) -> Settings:
    """Return the line that leaves starving jobs to the formula, where the scheduler helps them."""
    return {"help_starving_jobs": "false"} if scheduler and scheduler.on("help_starving_jobs") else {}


def changed(wanted: Settings, scheduler: Scheduler | None) -> Settings:
    """Return the lines that the scheduler does not have; all of them where its settings are not known."""
    return {name: value for name, value in wanted.items() if scheduler is None or _is_other(name, value, scheduler)}


def _is_other(name: str, value: str | None, scheduler: Scheduler) -> bool:
    now = scheduler.value(name)
    if value is None:
        return now is not None
    return scheduler.differs(name) or (now or _SHIPPED.get(name, "")).lower() != value.lower()
