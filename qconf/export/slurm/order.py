"""The order of the waiting jobs, from a slurm.conf and the job_submit.lua of an export."""

from __future__ import annotations

from parsim.fairshare import FAIRSHARE
from qconf.config import FairshareConfig, ShareConfig, SiteConfig, format_duration
from qconf.config.multifactor import TIER, Multifactor
from qconf.export.slurm.conf import Points
from qconf.history.times import slurm_limit

STEP = 3600  #: seconds from decay to decay of a half-life that is read
HALF_LIFE = 7 * 86400  #: Slurm's default
CALC_PERIOD = 300  #: Slurm's default
MAX_AGE = 7 * 86400  #: Slurm's default


def with_order(
    config: SiteConfig,
    settings: dict[str, str],
    shares: tuple[ShareConfig, ...],
    points: Points,
    warnings: list[str],
    *,
    alike: bool,
    tiers: bool,
) -> SiteConfig:
    """Return `config` with the order of a priority of age, fairshare and an export's points alone, and its shares.

    `alike`, the factors of all partitions are the same, so that their weight makes no difference; `tiers`, partitions
    of a higher one go before the others.
    """
    config = config.replace(shares=shares)
    weights = {
        key.removeprefix("priorityweight"): int(value)
        for key, value in settings.items()
        if key.startswith("priorityweight") and value.isdigit() and value != "0"
    }
    fair = weights.get("fairshare", 0)
    greatest = max((qos.priority for qos in config.qos), default=0.0)
    unit = weights.pop("qos") / greatest if greatest and "qos" in weights else 0.0  # of the priority of a QOS
    if settings.get("prioritytype", "").lower() != "priority/multifactor" or not (fair or points or unit):
        return config
    tree = "NO_FAIR_TREE" not in settings.get("priorityflags", "").upper().split(",")
    if fair:
        half = _seconds("PriorityDecayHalfLife", settings, HALF_LIFE, warnings)
        use = FairshareConfig(
            decay_time=STEP if half else 86400,
            decay_factor=0.5 ** (STEP / half) if half else 1.0,
            fair_share="tree" if tree else "classic",
            unknown_shares=1,
        )
        config = config.replace(fairshare=use)
    listed = settings.get("priorityweighttres", "")  # like CPU=1000,Mem=250
    age = weights.get("age", 0)
    others = set(weights) - {"age", "fairshare"} - ({"partition"} if alike else set())
    if listed or others or ((points or unit) and not age):
        return config
    if not age:
        factor = f"{TIER} * queue_priority + fair_share" if tiers else "fair_share"
        return config.replace(order=FAIRSHARE if tree else factor)
    longest = _seconds("PriorityMaxAge", settings, MAX_AGE, warnings)
    if points.weight:
        config = _with_priorities(config, points, warnings, tiers=tiers)
    order = Multifactor(
        points.classes,
        longest,
        tiers,
        points.sizes,
        points.weight,
        max(1, round(fair * longest / age)) if fair else 0,
        max(1, round(unit * longest / age)) if unit else 0,
    )
    period = _seconds("PriorityCalcPeriod", settings, CALC_PERIOD, warnings)
    return config.replace(order=order.formula, priority_calc_period=period)


def _with_priorities(config: SiteConfig, points: Points, warnings: list[str], *, tiers: bool) -> SiteConfig:
    """Give the queues the priorities that are their points apart; their tiers go by them too."""
    last = max(points.places.values())
    priorities = {name: 1.0 + (last - place) / points.weight for name, place in points.places.items()}
    queues = [queue.model_copy(update={"priority": priorities.get(queue.name, 1.0)}) for queue in config.queues]
    ranked = sorted(zip(config.queues, queues, strict=True), key=lambda pair: pair[1].priority)
    if tiers and [old.priority for old, _ in ranked] != sorted(old.priority for old, _ in ranked):
        warnings.append("job_submit.lua: its places of the queues are not in the order of their tiers: left out")
        return config
    return config.replace(queues=tuple(queues))


def _seconds(word: str, settings: dict[str, str], default: int, warnings: list[str]) -> int:
    """Read a time of slurm.conf, seconds."""
    text = settings.get(word.lower(), "")
    try:
        return slurm_limit(text) if text else default
    except ValueError:
        warnings.append(f"{word}={text} is not understood: Slurm's default, {format_duration(default)}, was taken")
        return default
