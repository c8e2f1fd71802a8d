"""Qualities of service in Slurm: QOS with priorities, limits and exemptions, and those who have one; and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from parsim.model.qos import ALL_LIMITS, EXEMPTIONS
from parsim.model.throttles import RESOURCES
from qconf.config import QOSConfig, SiteConfig, ThrottleConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import InputError
from qconf.export.nodes import read_text
from qconf.export.slurm.conf import Conf
from qconf.export.slurm.throttles import (
    EACH,
    FREE,
    OF_QUEUES,
    WORDS,
    amount,
    by_whose,
    limit_of,
    limited,
    number,
    word_of,
)
from qconf.export.slurm.throttles import of_queue as resources_of_queue
from qconf.history.times import slurm_limit

FILE = "classes.sacctmgr"
OVER = "OverPartQOS"  #: the flag with which limits of a job's QOS go before those of its partition's

#: The word of a QOS that takes the place of limits of a name, of its partition and of its association.
_FREES = {name: word for (each, name), word in WORDS.items() if not each} | OF_QUEUES
#: Limits by the names of ``sacctmgr show qos``, where these are others than those of ``modify``.
SHOWN = {
    "GrpSubmit": "GrpSubmitJobs",
    "MaxJobsPU": "MaxJobsPerUser",
    "MaxTRESPU": "MaxTRESPerUser",
    "MaxSubmitPU": "MaxSubmitJobsPerUser",
    "MaxJobsPA": "MaxJobsPerAccount",
    "MaxTRESPA": "MaxTRESPerAccount",
    "MaxSubmitPA": "MaxSubmitJobsPerAccount",
}
_OF_QUEUES = {word: name for name, word in OF_QUEUES.items()}

BOUNDS = ("MaxWall", "MaxTRES=node", "MaxTRES=cpu", "MinTRES=cpu")  #: of one job
OF_ONE = {"MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "MaxWall", "MinTRES"}  #: words of limits of one job
#: Values of ``show qos`` that change nothing, and flags that are simulated or keep jobs out at submission.
_IDLE = {
    "GraceTime": "[0:]*",
    "PreemptMode": "cluster",
    "LimitFactor": r"[01](\.0*)?",
    "UsageThres": r"0(\.0*)?",
}
_READ = ("Priority", "Descr", "Description", "ID", "UsageFactor")
_FLAGS = (OVER, "DenyOnLimit", "PartitionMaxNodes", "PartitionMinNodes", "PartitionTimeLimit")

Limits = dict[str, int]  #: by word of sacctmgr


def both(config: SiteConfig) -> dict[str, list[tuple[str, str, str]]]:
    """Return the limits of a kind that a QOS and a partition have, of which one would hold: queue, word and name."""
    limits = [(q.name, word, RESOURCES) for q in config.queues for word, _ in resources_of_queue(config, q.name)]
    for word, name in sorted(_OF_QUEUES.items()):
        limits += [(queue.name, word, name) for queue in config.queues if getattr(queue, name) is not None][:1]
    return {
        qos.name: [each for each in limits if each[1] in own_limits(config, qos) and not _is_exempt(qos, each[2])]
        for qos in config.qos
    }


def _is_exempt(qos: QOSConfig, name: str) -> bool:
    return bool({name.partition(".")[0], ALL_LIMITS} & {*qos.exempt})


def own_limits(config: SiteConfig, qos: QOSConfig) -> Limits:
    """Return the limits of a QOS by word: those by its name in place of those of each."""
    found: Limits = {}
    for throttle in sorted(config.throttles, key=lambda throttle: bool(throttle.name)):
        whose = throttle.of_qos or throttle.name or qos.name  # the last of each QOS
        if throttle.is_of_qos and whose == qos.name:
            each = throttle.each if throttle.of_qos and throttle.each else ""
            limits = ((word_of(each, name), amount(name, limit)) for name, limit in throttle.limits.items())
            found |= {word: limit for word, limit in limits if word is not None}
    return found


def weight(config: SiteConfig) -> int | None:
    """Return PriorityWeightQOS: the points of the QOS of the greatest priority; None where the order has none."""
    order = Multifactor.of(config.order)
    if order is None or not order.qos:
        return None
    return order.qos * max((int(qos.priority) for qos in config.qos), default=0)


def statements(config: SiteConfig) -> list[str]:
    """Write the QOS as lines of sacctmgr, then who has one."""
    lines = []
    for qos in config.qos:
        change = f"modify qos {qos.name} set"
        free = {word: FREE for name, word in _FREES.items() if _is_exempt(qos, name)}
        for name in limited(config) if _is_exempt(qos, RESOURCES) else ():
            free |= {str(word_of(each, f"{RESOURCES}.{name}")): FREE for each in EACH}
        lines += [f"add qos {qos.name}", f"{change} Priority={int(qos.priority)}"]
        lines += [f"{change} UsageFactor={qos.usage_factor:.6f}".rstrip("0").rstrip(".")]
        lines += [f"{change} Flags+={OVER}"] if free else []
        for limits in (free, own_limits(config, qos)):  # of one word the last holds
            lines += [f"{change} {word}={limit}" for word, limit in limits.items()]
    for qos in config.qos:
        accounts = dict.fromkeys((*qos.accounts, *qos.groups))
        for kind, names in (("account", accounts), ("user", qos.users)):
            for name in names:
                whose = f"modify {kind} where name={name} set"
                lines += [f"{whose} QosLevel+={qos.name}", f"{whose} DefaultQOS={qos.name}"]
    return lines


def read(conf: Conf) -> tuple[tuple[QOSConfig, ...], tuple[ThrottleConfig, ...]]:
    """Read the QOS of an export's file and their limits; none where there is no such file."""
    found: dict[str, dict[str, str]] = {}
    members: dict[str, dict[str, list[str]]] = {}
    for kind, name, word, value in conf.statements(FILE):
        if kind == "qos":
            found.setdefault(name, {})[word] = value
        elif word == "DefaultQOS":
            members.setdefault(value, {}).setdefault(f"{kind}s", []).append(name)
    return configs(found, members)


def read_table(path: str | Path) -> dict[str, dict[str, str]]:
    """Read ``sacctmgr --parsable2 show qos``: by QOS the words of `modify` and their values. Raises InputError."""
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), start=1) if line.strip()]
    columns = [name.strip() for name in lines[0][1].split("|")] if lines else []
    if "Name" not in columns:
        fix = "give the output of sacctmgr --parsable2 show qos, with its header"
        raise InputError("has no column Name", file=path, line=1, fix=fix)
    found: dict[str, dict[str, str]] = {}
    for at, line in lines[1:]:
        cells = line.rstrip("\r\n").split("|")
        if len(cells) < len(columns):
            message = f"{len(cells)} columns where the header has {len(columns)}"
            raise InputError(message, file=path, line=at, value=line[:60], fix="give whole lines")
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=False))
        name = row.pop("Name")
        found[name] = dict(_words(row))
    return found


def _words(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the words of `modify` of a row of ``show qos``, each TRES of a limit by itself."""
    for shown, value in row.items():
        word = SHOWN.get(shown, shown)
        amounts = re.findall(r"(?:^|,)([^=,]+)=([^,]+)", value)
        if amounts:
            yield from ((f"{word}={name}", amount) for name, amount in amounts)
        elif value:
            yield word, value


def remarks(name: str, words: Mapping[str, str], *, of_queue: bool) -> Iterator[str]:
    """Name what of a QOS is not simulated."""
    left = unsimulated(words, of_queue=of_queue)
    of_one = [each for each in left if each.partition("=")[0] in OF_ONE]
    if others := [each for each in left if each not in of_one]:
        yield f"QOS {name}: not simulated: {', '.join(others)}"
    if of_one:
        yield f"QOS {name}: limits of one job, which those of a log have met: {', '.join(of_one)}"


def unsimulated(words: Mapping[str, str], *, of_queue: bool) -> list[str]:
    """Name what no configuration has of a QOS, or with `of_queue` no queue whose partition has it."""
    found = []
    for word, value in words.items():
        if of := limit_of(word):
            simulated = not of_queue or word in _OF_QUEUES or of[1].startswith(RESOURCES)
            found += [f"{word}={value}"] if number(word, value) is None or not simulated else []
        elif word == "Flags":
            others = [flag for flag in value.split(",") if flag not in _FLAGS]
            found += [f"Flags={','.join(others)}"] if others else []
        elif word == "UsageFactor" and of_queue:
            found += [] if _factor(words) == 1 else [f"{word}={value}"]
        elif not (word in _READ or (of_queue and word in BOUNDS) or re.fullmatch(_IDLE.get(word, "(?!)"), value)):
            found.append(f"{word}={value}")
    return found


def bounded(fields: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a partition within the most nodes and the longest time of one job of its QOS."""
    found = dict(fields)
    for key, word in (("maxnodes", "MaxTRES=node"), ("maxtime", "MaxWall")):
        own, value = found.get(key, "UNLIMITED"), words.get(word, "")
        amounts = [each for each in (own, value) if re.fullmatch(r"[0-9][0-9:-]*", each)]
        if value and amounts:
            found[key] = min(amounts, key=slurm_limit)
    return found


def cores(bounds: tuple[int, int], words: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the least and the most cores within those of one job of the QOS of a partition; None where none are."""
    least, most = (words.get(word, "") for word in ("MinTRES=cpu", "MaxTRES=cpu"))
    low = max(bounds[0], int(least)) if least.isdigit() else bounds[0]
    high = min(bounds[1], int(most)) if most.isdigit() else bounds[1]
    return (low, high) if low <= high else None


def of_queue(words: Mapping[str, str]) -> dict[str, int]:
    """Return the limits of a queue whose partition has a QOS of these words."""
    return {name: int(words[word]) for word, name in _OF_QUEUES.items() if words.get(word, "").isdigit()}


def _factor(words: Mapping[str, str]) -> float:
    """Return by what the charges of a QOS are multiplied."""
    value = words.get("UsageFactor", "")
    return float(value) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]*)?", value) else 1.0


def configs(
    found: Mapping[str, Mapping[str, str]], members: Mapping[str, Mapping[str, list[str]]] | None = None
) -> tuple[tuple[QOSConfig, ...], tuple[ThrottleConfig, ...]]:
    """Return QOS of words of `modify`, and their limits as throttles.

    `members` are those who have each in an export, which frees jobs of a limit by `FREE`; else any limit frees them.
    """
    classes, throttles = [], []
    for name, words in found.items():
        numbers = {word: most for word, value in words.items() if (most := number(word, value)) is not None}
        if members is not None:
            free = {word for word, most in numbers.items() if most == FREE}
        else:
            free = {*numbers} if OVER in words.get("Flags", "") else set()
        freed = {field for field, word in _FREES.items() if word in free}
        if any(numbers[word] == FREE and "=" in word and "=cpu" not in word for word in free):
            freed.add(RESOURCES)
        exempt = [ALL_LIMITS] if {*_FREES} <= freed else [field for field in EXEMPTIONS if field in freed]
        priority = float(words.get("Priority", "0") or 0)
        fields = {"name": name, "priority": priority, "exempt": exempt, "usage_factor": _factor(words)}
        classes.append(QOSConfig.model_validate({**fields, **(members or {}).get(name, {})}))
        for each, limits in by_whose(words.items()).items():
            throttles.append(ThrottleConfig.of(limits, each=each or None, qos=name))
    return tuple(classes), tuple(throttles)
