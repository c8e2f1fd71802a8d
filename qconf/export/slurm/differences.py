"""Differences between the simulator and Slurm: every plan names those of its configuration."""

from __future__ import annotations

from qconf.config import SiteConfig
from qconf.config.billing import left_out
from qconf.config.multifactor import Multifactor
from qconf.export.rendering import notes
from qconf.export.slurm import kept, qos, throttles
from qconf.export.slurm.partitions import preempted

LONGEST_AGE = 30 * 86400  #: a larger bf_min_age_reserve is an error to Slurm, and counts as none
LONGEST_WINDOW = 30 * 1440  #: of bf_window, in minutes


def differences(config: SiteConfig) -> list[str]:
    """Name what Slurm does otherwise than the simulator."""
    values = {
        "order": Multifactor.of(config.order),
        "longest_window": LONGEST_WINDOW * 60,
        "longest_age": LONGEST_AGE,
        "calc_minutes": calc_minutes(config),
        "uncharged": list(dict.fromkeys(tres for queue in config.queues for tres in left_out(queue.billing))),
        "requeued": preempted(config, "requeue"),
        "suspended": preempted(config, "suspend"),
        "throttled": any(f"qos {throttles.QOS}" in line for line in throttles.statements(config)),
        "tres": [throttles.tres(name) for name in throttles.limited(config)],
        "core_seconds": any((throttle.max_run_core_seconds or 0) % 60 for throttle in config.throttles),
        "qos_weight": qos.weight(config),
    }
    common = notes("", "common", system="Slurm", config=placed(config))
    of_kept = notes("slurm", "kept", rooms=kept.rooms(config))
    return [*notes("slurm", "differences", config=config, **values), *common, *of_kept]


def calc_minutes(config: SiteConfig) -> int:
    """Return PriorityCalcPeriod: whole minutes, at least one."""
    return max(1, round(config.priority_calc_period / 60))


def placed(config: SiteConfig) -> SiteConfig:
    """Return the configuration with its pool as Slurm has it: a job runs in one partition."""
    if config.pool is None or config.pool.placement == "pool":
        return config
    return config.replace(pool=config.pool.model_copy(update={"placement": "pool"}))
