"""Merge the partitions of an export into those of a slurm.conf, keeping what the export does not change.

The export's script new-conf contains `NEUTRAL` and the source below, to the byte, so that it imports nothing of qconf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qconf.export.slurm.queues import NEUTRAL

TIMES = ("maxtime", "defaulttime", "prioritymaxage", "prioritydecayhalflife")
OLDER = {"shared": "oversubscribe", "priority": "prioritytier"}  # names of before

Words = dict[str, tuple[str, str]]  # the name as written and the value, by the name in lower case


def words_of(line: str) -> Words:
    """Return the words of a line of slurm.conf."""
    found = re.findall(r"(?<!\S)([A-Za-z]\w*)\s*=\s*(\"[^\"]*\"|\S*)", re.sub(r"(?<!\\)#.*", "", line))
    return {OLDER.get(name.lower(), name.lower()): (name, value) for name, value in found}


def partitions_of(lines: Iterable[str]) -> tuple[dict[str, Words], Words]:
    """Return what each partition has, of its lines and of those of DEFAULT before them, and the last of DEFAULT."""
    found: dict[str, Words] = {}
    default: Words = {}
    for line in lines:
        words = words_of(line)
        _, name = words.pop("partitionname")
        if name.upper() == "DEFAULT":
            default = {**default, **words}
        else:
            both = {**default, **words}
            if name in found and "nodes" in both and "nodes" in found[name]:  # of several lines the nodes are joined
                both["nodes"] = (both["nodes"][0], ",".join(of["nodes"][1] for of in (found[name], both)))
            found[name] = {**found.get(name, {}), **both}
    return found, default


def alike(key: str, one: str, other: str) -> bool:
    """Return whether two values of a word are the same to Slurm."""
    if key == "nodes":
        return one == other
    if key in TIMES and None not in (minutes(one), minutes(other)):
        return minutes(one) == minutes(other)
    names = [sorted(each.strip('"').lower().split(",")) for each in (one, other)]
    return names[0] == names[1] or (key == "minnodes" and {one, other} == {"0", "1"})


def minutes(text: str) -> float | None:
    """Return a time of slurm.conf in minutes; None where it is none."""
    if text.upper() in ("UNLIMITED", "INFINITE", "-1"):
        return float("inf")
    match = re.fullmatch(r"(?:([0-9]+)-)?([0-9]+)(?::([0-9]+))?(?::([0-9]+))?", text)
    if match is None:
        return None
    days, first, second, third = (int(each or 0) for each in match.groups())
    if match[1] or match[4]:
        return 1440 * days + 60 * first + second + third / 60
    return first + second / 60


def merged(
    theirs: Words | None, ours: Words, default: Words, changed: Sequence[str] = tuple(NEUTRAL)
) -> tuple[Words, list[tuple[str, str, str]]]:
    """Return what a partition has with those words of `ours` that are changed, and which these are, old and new.

    A new one, without `theirs`, has what DEFAULT says beside. An empty string stands for none.
    """
    before = theirs or {key: word for key, word in default.items() if key not in NEUTRAL}
    line, rows = dict(before), []
    for key in ours if theirs is None else changed:
        old = before.get(key, ("", ""))[1]
        name, new = ours.get(key, (before.get(key, (key, ""))[0], ""))
        if alike(key, old or NEUTRAL.get(key, ""), new or NEUTRAL.get(key, "")):
            continue
        line.pop(key, None)
        if new:
            line[key] = (name, new)
        rows.append((name, old, new))
    longest, usual = (minutes(line.get(key, ("", ""))[1]) for key in ("maxtime", "defaulttime"))
    shorter = any(name.lower() == "maxtime" for name, *_ in rows)
    if shorter and longest is not None and usual is not None and longest < usual < float("inf"):  # no job would start
        rows.append(("DefaultTime", line["defaulttime"][1], line["maxtime"][1]))
        line["defaulttime"] = ("DefaultTime", line["maxtime"][1])
    return {**{key: word for key, word in ours.items() if key not in line and key not in NEUTRAL}, **line}, rows


def written(name: str, words: Words) -> str:
    """Write the line of a partition."""
    return " ".join([f"PartitionName={name}", *(f"{spelled}={value}" for spelled, value in words.values())])
