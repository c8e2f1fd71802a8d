"""Write QOS with priorities, limits, exemptions and members for Slurm, and read them back."""

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
from qconf.export.slurm import throttles
from qconf.export.slurm.conf import Conf
from qconf.history.times import LIMIT, slurm_limit

FILE = "classes.sacctmgr"
OVER = "OverPartQOS"  #: flag: limits of a job's QOS override those of its partition's QOS

#: Limit -> the word of a QOS that overrides this limit of partition and association.
_FREES = {name: word for (each, name), word in throttles.WORDS.items() if not each} | throttles.OF_QUEUES
#: Limits whose name in ``sacctmgr show qos`` differs: that name -> the word of ``modify``.
SHOWN = {
    "GrpSubmit": "GrpSubmitJobs",
    "MaxJobsPU": "MaxJobsPerUser",
    "MaxTRESPU": "MaxTRESPerUser",
    "MaxSubmitPU": "MaxSubmitJobsPerUser",
    "MaxJobsPA": "MaxJobsPerAccount",
    "MaxTRESPA": "MaxTRESPerAccount",
    "MaxSubmitPA": "MaxSubmitJobsPerAccount",
}
_OF_QUEUES = {word: name for name, word in throttles.OF_QUEUES.items()}

BOUNDS = ("MaxWall", "MaxTRES=node", "MaxTRES=cpu", "MinTRES=cpu")  #: limits of one job
OF_ONE = {"MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "MaxWall", "MinTRES"}  #: all words of limits of one job
#: Values in ``show qos`` without effect; flags that are simulated or act only at submission.
_IDLE = {
    "GraceTime": "[0:]*",
    "PreemptMode": "cluster",
    "LimitFactor": r"[01](\.0*)?",
    "UsageThres": r"0(\.0*)?",
}
_READ = ("Priority", "Descr", "Description", "ID", "UsageFactor")
_FLAGS = (OVER, "DenyOnLimit", "PartitionMaxNodes", "PartitionMinNodes", "PartitionTimeLimit")

Limits = dict[str, int]  #: limit by word of sacctmgr


def both(config: SiteConfig) -> dict[str, list[tuple[str, str, str]]]:
    """Return by QOS the limits that a queue also sets, so that only one would apply: (queue, word, limit)."""
    limits = [(q.name, word, RESOURCES) for q in config.queues for word, _ in throttles.of_queue(config, q.name)]
    for word, name in sorted(_OF_QUEUES.items()):
        limits += [(queue.name, word, name) for queue in config.queues if getattr(queue, name) is not None][:1]
    return {
        qos.name: [each for each in limits if each[1] in own_limits(config, qos) and not _is_exempt(qos, each[2])]
        for qos in config.qos
    }


def _is_exempt(qos: QOSConfig, name: str) -> bool:
    return bool({name.partition(".")[0], ALL_LIMITS} & {*qos.exempt})


def own_limits(config: SiteConfig, qos: QOSConfig) -> Limits:
    """Return the limits of a QOS by word; limits for its name override limits for each QOS."""
    found: Limits = {}
    for throttle in sorted(config.throttles, key=lambda throttle: bool(throttle.name)):
        whose = throttle.of_qos or throttle.name or qos.name  # the last is for each QOS
        if throttle.is_of_qos and whose == qos.name:
            each = throttle.each if throttle.of_qos and throttle.each else ""
            for name, limit in throttle.limits.items():
                if (word := throttles.word_of(each, name)) is not None:
                    found[word] = throttles.amount(name, limit)
    return found


def weight(config: SiteConfig) -> int | None:
    """Return PriorityWeightQOS: the points of the highest QOS priority; None if the order does not use QOS."""
    order = Multifactor.of(config.order)
    if order is None or not order.qos:
        return None
    return order.qos * max((int(qos.priority) for qos in config.qos), default=0)


def statements(config: SiteConfig) -> list[str]:
    """Return the QOS as lines of sacctmgr, then their members."""
    lines = []
    for qos in config.qos:
        change = f"modify qos {qos.name} set"
        free = {word: throttles.FREE for name, word in _FREES.items() if _is_exempt(qos, name)}
        for name in throttles.limited(config) if _is_exempt(qos, RESOURCES) else ():
            free |= {str(throttles.word_of(each, f"{RESOURCES}.{name}")): throttles.FREE for each in throttles.EACH}
        lines += [f"add qos {qos.name}", f"{change} Priority={int(qos.priority)}"]
        lines += [f"{change} UsageFactor={qos.usage_factor:.6f}".rstrip("0").rstrip(".")]
        lines += [f"{change} Flags+={OVER}"] if free else []
        for limits in (free, own_limits(config, qos)):  # the last line of a word counts
            lines += [f"{change} {word}={limit}" for word, limit in limits.items()]
    for qos in config.qos:
        accounts = dict.fromkeys((*qos.accounts, *qos.groups))
        for kind, names in (("account", accounts), ("user", qos.users)):
            for name in names:
                whose = f"modify {kind} where name={name} set"
                lines += [f"{whose} QosLevel+={qos.name}", f"{whose} DefaultQOS={qos.name}"]
    return lines


def read(conf: Conf) -> tuple[tuple[QOSConfig, ...], tuple[ThrottleConfig, ...]]:
    """Read QOS and their limits from an export's file; empty without it."""
    found: dict[str, dict[str, str]] = {}
    members: dict[str, dict[str, list[str]]] = {}
    for kind, name, word, value in conf.statements(FILE):
        if kind == "qos":
            found.setdefault(name, {})[word] = value
        elif word == "DefaultQOS":
            members.setdefault(value, {}).setdefault(f"{kind}s", []).append(name)
    return configs(found, members)


def read_table(path: str | Path) -> dict[str, dict[str, str]]:
    """Read ``sacctmgr --parsable2 show qos`` as values by word of `modify`, by QOS. Raises InputError."""
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
        if not re.fullmatch(r"[0-9]{0,10}", priority := row.get("Priority", "")):
            raise InputError("is no whole number", file=path, line=at, field="Priority", value=priority)
        name = row.pop("Name")
        found[name] = dict(_words(row))
    return found


def _words(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (word of `modify`, value) of a row of ``show qos``, one for each TRES of a limit."""
    for shown, value in row.items():
        word = SHOWN.get(shown, shown)
        amounts = re.findall(r"(?:^|,)([^=,]+)=([^,]+)", value)
        if amounts:
            yield from ((f"{word}={name}", amount) for name, amount in amounts)
        elif value:
            yield word, value


def remarks(name: str, words: Mapping[str, str], *, of_queue: bool) -> Iterator[str]:
    """Yield warnings about the settings of a QOS that are not simulated."""
    left = unsimulated(words, of_queue=of_queue)
    of_one = [each for each in left if each.partition("=")[0] in OF_ONE]
    if others := [each for each in left if each not in of_one]:
        yield f"QOS {name}: not simulated: {', '.join(others)}"
    if of_one:
        yield f"QOS {name}: limits of one job, which those of a log have met: {', '.join(of_one)}"


def unsimulated(words: Mapping[str, str], *, of_queue: bool) -> list[str]:
    """Return the settings of a QOS ("word=value") that are not simulated; `of_queue`: it is a partition's QOS."""
    found = []
    for word, value in words.items():
        if of := throttles.limit_of(word):
            simulated = not of_queue or word in _OF_QUEUES or of[1].startswith(RESOURCES)
            found += [f"{word}={value}"] if not (throttles.number(word, value) and simulated) else []
        elif word == "Flags":
            others = [flag for flag in value.split(",") if flag not in _FLAGS]
            found += [f"Flags={','.join(others)}"] if others else []
        elif word == "UsageFactor" and of_queue:
            found += [] if _factor(words) == 1 else [f"{word}={value}"]
        elif not (word in _READ or (of_queue and word in BOUNDS) or re.fullmatch(_IDLE.get(word, "(?!)"), value)):
            found.append(f"{word}={value}")
    return found


def bounded(fields: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a partition with MaxNodes and MaxTime reduced to its QOS's limits of one job."""
    found = dict(fields)
    for key, word in (("maxnodes", "MaxTRES=node"), ("maxtime", "MaxWall")):
        own, value = found.get(key, "UNLIMITED"), words.get(word, "")
        amounts = [each for each in (own, value) if LIMIT.fullmatch(each)]
        if value and amounts:
            found[key] = min(amounts, key=slurm_limit)
    return found


def cores(bounds: tuple[int, int], words: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the range of cores reduced to the QOS's limits of one job; None if it becomes empty."""
    least, most = (words.get(word, "") for word in ("MinTRES=cpu", "MaxTRES=cpu"))
    low = max(bounds[0], int(least)) if least.isdigit() else bounds[0]
    high = min(bounds[1], int(most)) if most.isdigit() else bounds[1]
    return (low, high) if low <= high else None


def of_queue(words: Mapping[str, str]) -> dict[str, int]:
    """Return the limits of a queue from the words of its partition's QOS."""
    found = {name: throttles.number(word, words.get(word, "")) for word, name in _OF_QUEUES.items()}
    return {name: most for name, most in found.items() if most is not None and most < throttles.FREE}


def _factor(words: Mapping[str, str]) -> float:
    """Return the UsageFactor of a QOS, 1 by default."""
    value = words.get("UsageFactor", "")
    return float(value) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]*)?", value) else 1.0


def configs(
    found: Mapping[str, Mapping[str, str]], members: Mapping[str, Mapping[str, list[str]]] | None = None
) -> tuple[tuple[QOSConfig, ...], tuple[ThrottleConfig, ...]]:
    """Return QOS from words of `modify`, and their limits as throttles.

    `members` (by QOS) are given for an export, where `FREE` is an exemption; else it is any limit of a QOS with `OVER`.
    """
    classes, of_classes = [], []
    for name, words in found.items():
        numbers = {word: most for word, value in words.items() if (most := throttles.number(word, value)) is not None}
        if members is not None:
            free = {word for word, most in numbers.items() if most == throttles.FREE}
        else:
            free = {*numbers} if OVER in words.get("Flags", "") else set()
        freed = {field for field, word in _FREES.items() if word in free}
        if any(numbers[word] == throttles.FREE and "=" in word and "=cpu" not in word for word in free):
            freed.add(RESOURCES)
        exempt = [ALL_LIMITS] if {*_FREES} <= freed else [field for field in EXEMPTIONS if field in freed]
        priority = float(words.get("Priority", "0") or 0)
        fields = {"name": name, "priority": priority, "exempt": exempt, "usage_factor": _factor(words)}
        classes.append(QOSConfig.model_validate({**fields, **(members or {}).get(name, {})}))
        for each, limits in throttles.by_whose(words.items()).items():
            of_classes.append(ThrottleConfig.of(limits, each=each or None, qos=name))
    return tuple(classes), tuple(of_classes)
