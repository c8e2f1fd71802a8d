"""Compute the settings of slurm.conf for a configuration: order, usage, backfilling."""

from __future__ import annotations

from qconf.config import SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export.slurm import fairshare, qos, throttles
from qconf.export.slurm.order import weights_of_tres
from qconf.export.slurm.queues import clock, is_limited
from qconf.text import grouped

LONGEST_AGE = 30 * 86400  #: Slurm rejects a larger bf_min_age_reserve
LONGEST_WINDOW = 30 * 1440  #: longest bf_window, minutes
STEPS = 200  #: most candidate starts of a job; Slurm gives up after two seconds


def order_settings(config: SiteConfig) -> dict[str, str]:
    """Return the settings of slurm.conf for the order of waiting jobs. Raises ExportError."""
    order = Multifactor.of(config.order)
    if order is None:
        return {"PriorityType": "priority/basic"}
    most = most_points(config, order)
    words = {
        "PriorityType": "priority/multifactor",
        "PriorityCalcPeriod": str(calc_minutes(config)),
        "PriorityFavorSmall": "NO",
        "PriorityMaxAge": clock(order.max_age),
        "PriorityWeightAge": str(order.max_age),
        "PriorityWeightJobSize": "0",
    }
    if (points := qos.weight(config)) is not None:
        words["PriorityWeightQOS"] = str(points)
    if weights := weights_of_tres(config, order):
        words["PriorityWeightTRES"] = weights
    # Equal for every job, so that priorities stay positive after the deductions of job_submit.lua.
    words["PriorityWeightPartition"] = str(most + 1)
    if order.fair_share:
        words["PriorityWeightFairshare"] = str(order.fair_share)
        words["PriorityDecayHalfLife"] = clock(fairshare.half_life(config))
        words["PriorityUsageResetPeriod"] = "NONE"
    return words


def calc_minutes(config: SiteConfig) -> int:
    """Return PriorityCalcPeriod in whole minutes, at least one."""
    return max(1, round(config.priority_calc_period / 60))


def most_points(config: SiteConfig, order: Multifactor | None) -> int:
    """Return the most points that job_submit.lua deducts from a job's priority."""
    return 0 if order is None else order.most + max(places(config, order).values())


def added(config: SiteConfig) -> dict[str, list[str]]:
    """Return the words to add to list settings of slurm.conf, by setting."""
    limited = any(is_limited(config, queue) for queue in config.queues) or throttles.statements(config) or config.qos
    order, tree = Multifactor.of(config.order), config.tree
    needed = {
        ("AccountingStorageEnforce", "limits"): limited,
        ("AccountingStorageEnforce", "qos"): config.qos,
        ("PriorityFlags", "NO_FAIR_TREE"): order is not None and order.fair_share and tree.fair_share == "classic",
        ("PriorityFlags", "MAX_TRES"): config.is_fair and tree.charged == "max",
    }
    return grouped(each for each, is_needed in needed.items() if is_needed)


def places(config: SiteConfig, order: Multifactor) -> dict[str, int]:
    """Return by queue the points that its jobs have less than jobs of the highest queue. Raises ExportError."""
    highest = max(queue.priority for queue in config.queues)
    found = {queue.name: order.weight * (highest - queue.priority) for queue in config.queues}
    if uneven := [name for name, points in found.items() if points != int(points)]:
        raise ExportError(
            f"order {config.order!r}: Slurm's points are whole numbers, and {order.weight} times the priority of "
            f"{', '.join(uneven)} is none apart from the others'; change the factor or the priorities"
        )
    return {name: int(points) for name, points in found.items()}


def backfilling(config: SiteConfig) -> dict[str, str]:
    """Return the words of SchedulerParameters for backfilling as close as possible to the simulator's.

    Each partition has one reservation, on busy nodes if possible, and every waiting job is tried soon. Slurm searches
    the start of a job in steps of a fixed size; by default they double, up to half of the window.
    """
    if not config.backfill:
        return {}
    longest = min(max(queue.walltime[1] for queue in config.queues), LONGEST_WINDOW * 60)
    words = {
        "bf_busy_nodes": "",
        "bf_continue": "",
        "bf_interval": "10",
        "bf_job_part_count_reserve": str(config.reservation_depth or 0),
        "bf_max_job_test": "10000",
        "bf_max_time": "60",
        "bf_resolution": "60",
        "bf_window": str(max(-(-longest // 60), 1440)),
        "bf_window_linear": str(max(1, longest // STEPS)),
    }
    words |= throttles.parameters(config)
    age = min(config.reservation_delay, LONGEST_AGE)
    return words | ({"bf_min_age_reserve": str(age)} if age else {})
