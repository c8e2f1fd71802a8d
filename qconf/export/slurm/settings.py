"""The order of waiting jobs and backfilling as settings of slurm.conf: written, and read with the job_submit.lua."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from parsim.model.fairshare import FAIRSHARE
from qconf.config import FairshareConfig, SiteConfig, format_duration
from qconf.config.multifactor import TIER, Multifactor
from qconf.errors import ExportError
from qconf.export.slurm import fairshare, qos, throttles
from qconf.export.slurm.conf import Conf, Fields
from qconf.export.slurm.fairshare import read_shares
from qconf.export.slurm.queues import Partition, Reader, clock, is_limited
from qconf.history.times import slurm_limit
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


#: Names of requested resources in formulas, by the words of PriorityWeightTRES in lower case.
TRES = {"cpu": "ncpus", "gres/gpu": "ngpus", "mem": "mem"}
#: Spelling of the weights in slurm.conf, after PriorityWeight.
WEIGHTS = {name.lower(): name for name in ("Age", "Fairshare", "JobSize", "Partition", "QOS", "Assoc", "TRES")}
STEP = 3600  #: decay interval, seconds, with which a half-life is read
#: Slurm's values for settings that slurm.conf lacks.
SHIPPED = {
    "schedulertype": "sched/backfill",
    "prioritycalcperiod": "5",
    "priorityfavorsmall": "NO",
    "prioritymaxage": "7-0",
    "prioritydecayhalflife": "7-0",
    "priorityusageresetperiod": "NONE",
    **dict.fromkeys(("priorityweightage", "priorityweightjobsize", "priorityweightpartition"), "0"),
}


def amounts(config: SiteConfig) -> dict[str, int]:
    """Return the machine's cores, GPUs and memory (KiB), by their names in formulas."""
    memory = sum(each.count * each.memory for each in config.nodes)
    gpus = sum(each.count * each.gpus for each in config.nodes)
    return {"ncpus": config.machine.cores, "ngpus": gpus, "mem": 1024 * memory}


def weights_of_tres(config: SiteConfig, order: Multifactor) -> str:
    """Return the value of PriorityWeightTRES; empty if the order counts no resources.

    Slurm multiplies each weight by the job's share of its partition's resource. Raises ExportError if partitions have
    different nodes, or if no node has a resource that counts.
    """
    there, words = amounts(config), {name: word for word, name in TRES.items()}
    bound = [queue.name for queue in config.queues if queue.nodes is not None]
    if order.tres and (bound or config.mode != "shared" or config.keeps_cores):
        raise ExportError(
            f"order {config.order!r}: PriorityWeightTRES counts {', '.join(name for name, *_ in order.tres)} as a part "
            "of what the partition has, and partitions have different nodes: take that out of the order, or let all "
            "queues use all nodes"
        )
    if missing := [name for name, *_ in order.tres if not there[name]]:
        raise ExportError(f"order {config.order!r}: nodes have nothing of {missing[0]} that counts: take it out")
    exact = [(words[name], points * there[name] / total) for name, points, total in order.tres]
    return ",".join(f"{word}={int(weight) if weight.is_integer() else weight!r}" for word, weight in exact)


def tres_of(listed: str, config: SiteConfig, unit: float) -> tuple[tuple[tuple[str, int, int], ...], list[str]]:
    """Read PriorityWeightTRES; return (name, weight * `unit` in s, machine's total) each, and the entries left out."""
    there = amounts(config)
    found, left = [], []
    for each in filter(None, listed.replace(" ", "").split(",")):
        word, _, text = each.partition("=")
        name = TRES.get(word.lower(), "")
        if not there.get(name) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
            left.append(each)
        elif float(text):
            found.append((name, max(1, round(float(text) * unit)), there[name]))
    return tuple(found), left


def with_order(
    config: SiteConfig,
    reader: Reader,
    fields_of: Sequence[Fields],
    partitions: Sequence[Partition],
    shares: str | Path | None,
) -> SiteConfig:
    """Return `config` with the shares, and with the order by priority that slurm.conf and job_submit.lua define.

    `fields_of` are the lines of all partitions. Slurm divides the partitions' factors by the highest of these; equal
    factors of `partitions`, which jobs can enter, are ignored. Weights that have no equal in an order are warned of.
    """
    conf, settings, warnings = reader.conf, reader.conf.settings, reader.warnings
    if shares is not None:
        config = config.replace(shares=read_shares(shares, warnings, settings.get("clustername", "")))
    if settings.get("prioritytype", "").lower() != "priority/multifactor":
        return config
    (points, places), factors = _points(conf), {each.name: each.factor for each in partitions}
    texts = (fields.get("priorityjobfactor", "1") for fields in fields_of)
    highest = max((int(text) for text in texts if text.isdigit()), default=1) or 1
    # Partitions of a higher tier go before the others; a formula ignores factors then.
    tiers = not config.has_tiers and len({each.tier for each in partitions}) > 1
    # If all partitions have all nodes, requests are shares of the same totals.
    whole = all(each.hosts in (frozenset(conf.nodes), frozenset()) for each in partitions)
    weights = _weights(settings)
    fair = weights.get("fairshare", 0)
    greatest = max((qos.priority for qos in config.qos), default=0.0)
    unit = weights.pop("qos") / greatest if greatest and "qos" in weights else 0.0  # per unit of QOS priority
    listed = settings.get("priorityweighttres", "0")  # like CPU=1000,Mem=250
    listed = "" if listed == "0" else listed
    if "qos" in weights and reader.table:
        del weights["qos"]  # no QOS has a priority
    if "qos" in weights:
        warnings.append("PriorityWeightQOS: for the priorities give --qos, output of sacctmgr --parsable2 show qos")
    if fair:
        config = config.replace(fairshare=_use(settings, warnings))
    tree = config.tree.fair_share == "tree"
    age, unit = weights.get("age", 0), unit if "age" in weights else 0.0
    longest = _seconds("PriorityMaxAge", settings, warnings)
    differ = weights.pop("partition", 0) if len({*factors.values()}) > 1 else 0
    parts = differ * longest / highest / age if age and differ and not tiers else 0.0
    others = set(weights) - {"age", "fairshare", "partition"}
    left = [f"PriorityWeight{WEIGHTS.get(key, key)}={weights[key]}" for key in sorted(others)]
    left += [f"PriorityWeightPartition={differ}"] * (differ > 0 and not parts)
    tres, unread = tres_of(listed, config, longest / age) if age and whole else ((), [listed] if listed else [])
    left += [f"PriorityWeightTRES={','.join(unread)}"] if unread else []
    if left and (fair or (age and (points != Multifactor() or unit or tres or parts))):
        warnings.append(f"{', '.join(left)}: left out of the order, which has the other weights")
    if not age and fair:
        factor = f"{TIER} * queue_priority + fair_share" if tiers else "fair_share"
        return config.replace(order=FAIRSHARE if tree else factor)
    if not age or not (fair or points != Multifactor() or unit or tres or parts):
        return config
    if points.weight:
        config = _with_priorities(config, points.weight, places, warnings, tiers=tiers)
    elif parts:
        least = 0.0 if min(factors.values()) else 1.0  # no priority is 0
        config = config.with_each(lambda queue: {"priority": factors[queue.name] + least})

    def rounded(weight: float) -> int:
        return max(1, round(weight)) if weight else 0

    of_queue = rounded(points.weight or parts)
    use, quality = rounded(fair * longest / age), rounded(unit * longest / age)
    order = replace(points, max_age=longest, tiers=tiers, weight=of_queue, fair_share=use, qos=quality, tres=tres)
    period = _seconds("PriorityCalcPeriod", settings, warnings)
    return config.replace(order=order.formula, priority_calc_period=period)


def _points(conf: Conf) -> tuple[Multifactor, dict[str, int]]:
    """Read the points in an export's job_submit.lua; return them as an order, and the points taken off by queue.

    The order's weight of a queue is the greatest common divisor of the queues' points.
    """
    text = conf.beside("job_submit.lua")

    def classes(name: str) -> tuple[tuple[int, int], ...]:
        line = re.search(rf"^local {name} = (.*)$", text, re.MULTILINE)
        found = re.findall(r"\{ (\d+|math\.huge), (\d+) \}", line[1]) if line else []
        last = int(found[-1][1]) if found else 0  # the last class adds 0
        return tuple((int(bound), abs(last - int(points))) for bound, points in found[:-1])

    listed = re.findall(r'\bname = "([^"]+)",.*\bplace = (\d+)', text)
    places = {name: int(place) for name, place in listed}
    weight = math.gcd(*places.values())
    return Multifactor(classes("CLASSES"), sizes=classes("SIZES"), weight=weight, expected=classes("EXPECTED")), places


def _weights(settings: dict[str, str]) -> dict[str, int]:
    """Return the priority weights that are positive integers, by factor, such as `age`."""
    return {
        key.removeprefix("priorityweight"): int(value)
        for key, value in settings.items()
        if key.startswith("priorityweight") and value.isdigit() and value != "0"
    }


def _use(settings: dict[str, str], warnings: list[str]) -> FairshareConfig:
    flags = [flag.strip() for flag in settings.get("priorityflags", "").upper().split(",")]
    half = _seconds("PriorityDecayHalfLife", settings, warnings)
    return FairshareConfig(
        decay_time=STEP if half else 86400,
        decay_factor=0.5 ** (STEP / half) if half else 1.0,
        fair_share="classic" if "NO_FAIR_TREE" in flags else "tree",
        unknown_shares=1,
        charged="max" if "MAX_TRES" in flags else "sum",
    )


def _with_priorities(
    config: SiteConfig, weight: int, places: Mapping[str, int], warnings: list[str], *, tiers: bool
) -> SiteConfig:
    """Return `config` with queue priorities from `places`; unchanged, with a warning, if these contradict tiers."""
    last = max(places.values())
    priorities = {name: 1.0 + (last - place) / weight for name, place in places.items()}
    former = [queue.priority for queue in sorted(config.queues, key=lambda queue: priorities.get(queue.name, 1.0))]
    if tiers and former != sorted(former):
        warnings.append("job_submit.lua: its places of the queues are not in the order of their tiers: left out")
        return config
    return config.with_each(lambda queue: {"priority": priorities.get(queue.name, 1.0)})


def _seconds(word: str, settings: dict[str, str], warnings: list[str]) -> int:
    """Return a time of slurm.conf in seconds; Slurm's default if it is missing or, with a warning, invalid."""
    text, default = settings.get(word.lower(), ""), slurm_limit(SHIPPED[word.lower()])
    try:
        return slurm_limit(text) if text else default
    except ValueError:
        warnings.append(f"{word}={text} is not understood: Slurm's default, {format_duration(default)}, was taken")
        return default
