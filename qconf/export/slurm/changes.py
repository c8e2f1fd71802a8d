"""What an export changes: all that a configuration sets, or what differs from what a slurm.conf has already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.slurm import shortpools
from qconf.export.slurm.conf import Conf
from qconf.export.slurm.desired import OF_QUEUES, STATEMENTS, Desired
from qconf.export.slurm.merging import alike, merged, partitions_of, written
from qconf.export.slurm.order import SHIPPED
from qconf.export.slurm.partitions import written as line_of
from qconf.export.slurm.queues import NEUTRAL, Line, qos_of

ORDER_KEPT = "PriorityWeightPartition"  #: has no use where job_submit.lua takes no points


class Row(NamedTuple):
    """A setting that changes; empty for none."""

    setting: str
    old: str
    new: str
    why: str


@dataclass(frozen=True)
class Changes:
    """What is to be loaded; `rows` is empty where it is not known what was there."""

    lines: Sequence[str]  #: of partitions.conf; empty where the partitions stay as they are
    settings: Mapping[str, str | None]  #: of slurm.conf; None takes one off
    added: Mapping[str, Sequence[str]]  #: words of its lists
    parameters: Mapping[str, str]  #: of SchedulerParameters
    dropped: Sequence[str]  #: of these, too
    statements: Mapping[str, Sequence[str]]  #: of sacctmgr, by their file
    routes: bool  #: whether job_submit.lua sends jobs that name no partition
    lua: bool  #: whether there is a job_submit.lua
    parts: frozenset[str]  #: parts of `Desired` that change
    rows: Sequence[Row] = ()

    @property
    def conf(self) -> bool:
        """Whether slurm.conf changes."""
        return bool(self.lines or self.settings or self.added or self.parameters or self.dropped or self.lua)

    @property
    def moves(self) -> bool:
        """Whether waiting jobs are looked at: for their partitions or their priorities."""
        return bool(self.lines or self.lua or self.parts & {"order"})

    def __bool__(self) -> bool:
        return bool(self.conf or self.statements or self.parts & {hours.FILE, shortpools.FILE})


def everything(wanted: Desired) -> Changes:
    """Return all that a configuration sets, where nothing is known of what is there. Raises ExportError."""
    return Changes(
        lines=[line_of(name, line) for name, line in wanted["partitions"].items()],
        settings={**wanted["scheduler"], **wanted["order"], **wanted["preemption"]},
        added={"JobSubmitPlugins": ["lua"], **wanted["added"]},
        parameters=wanted["parameters"],
        dropped=[word for word in ("bf_max_job_user", "bf_min_age_reserve") if word not in wanted["parameters"]],
        statements={name: wanted[name] for name in STATEMENTS if wanted[name]},
        routes=True,
        lua=True,
        parts=frozenset(wanted.parts),
    )


class Difference:
    """What differs between two configurations, for a slurm.conf from which one of them was read."""

    def __init__(self, conf: Conf, theirs: Desired, wanted: Desired) -> None:
        self.conf, self.theirs, self.wanted = conf, theirs, wanted
        self.base, self.config = theirs.config, wanted.config
        self.rows: list[Row] = []
        self.apart: list[str] = []  #: queues that need a QOS of their own in place of one that others have, too
        self.words, self.default = partitions_of(conf.lines_of_partitions)
        self.parts = frozenset(name for name, part in wanted.parts.items() if part != theirs.parts.get(name))

    def changes(self) -> Changes:
        """Compare all parts. Raises ExportError for one that changes and has no form in Slurm."""
        known, parts, exported = {*self.theirs.reasons()}, self.parts, self.conf.exported
        if new := next((reason for reason in self.wanted.reasons() if reason not in known), None):
            raise ExportError(new)
        for name in parts:
            self.wanted[name]
        statements = {name: found for name in STATEMENTS if name in parts and (found := self._statements(name))}
        settings = self._settings()
        lines = self._partitions() if "partitions" in parts or self.apart else []
        settings |= self._flags()
        added = self._added(settings)
        lua = bool(parts & {"routes", "points"} or ("bounds" in parts and exported))
        plugins = self._list("JobSubmitPlugins")
        if lua and "lua" in plugins and not exported:
            why = "which calls it first, as job_submit.site.lua"
            self._row("job_submit.lua", "the site's own", "the export's", why)
        elif lua and "lua" not in plugins:
            added["JobSubmitPlugins"] = ["lua"]
            does = "sends jobs that name no partition" if "routes" in parts else "gives jobs their places in the order"
            self._row("JobSubmitPlugins", ",".join(plugins), "lua", f"job_submit.lua {does}")
        parameters, dropped = self._parameters()
        routes = exported or "routes" in parts
        return Changes(lines, settings, added, parameters, dropped, statements, routes, lua, parts, self.rows)

    def _row(self, setting: str, old: str, new: str, why: str) -> None:
        self.rows.append(Row(setting, old, new, why))

    def _list(self, name: str) -> list[str]:
        return [word for word in self.conf.settings.get(name.lower(), "").lower().split(",") if word]

    def _before(self, part: str) -> Any:  # noqa: ANN401 - of each part its own
        """Return what a part was, of the kind that it becomes; nothing where it had no form."""
        found = self.theirs.parts[part]
        return found if isinstance(found, type(self.wanted[part])) else type(self.wanted[part])()

    def _settings(self) -> dict[str, str | None]:
        """Return the settings that change: those of the order together, since their weights are of one scale."""
        found: dict[str, str | None] = {}
        for part, why in (("scheduler", "backfill"), ("order", "order"), ("preemption", "tier, preempted")):
            if part not in self.parts:
                continue
            ours = dict(self.wanted[part])
            gone = {*self._before(part)} - {*ours}
            if part == "order":
                if self.wanted["points"] is None and ORDER_KEPT.lower() not in self.conf.settings:
                    ours.pop(ORDER_KEPT, None)
                gone |= {name for name in WEIGHTS if name not in ours}
            for name, value in [*ours.items(), *((name, None) for name in sorted(gone))]:
                old = self.conf.settings.get(name.lower(), "")
                usual = old or SHIPPED.get(name.lower(), "")
                if (value is None and old) or (value is not None and not alike(name.lower(), usual, value)):
                    found[name] = value
                    self._row(name, old, value or "", why)
        return found

    def _added(self, settings: Iterable[str]) -> dict[str, Sequence[str]]:
        """Return the words that lists gain."""
        found: dict[str, Sequence[str]] = {}
        for name, words in self.wanted["added"].items() if "added" in self.parts else ():
            if name in settings:
                continue
            present = {*self._list(name), *map(str.lower, self._before("added").get(name, ()))}
            if lacking := [word for word in words if word.lower() not in present]:
                found[name] = lacking
                why = "order" if name == "PriorityFlags" else "limits hold where they are enforced"
                self._row(name, ",".join(present), ",".join([*present, *lacking]), why)
        return found

    def _flags(self) -> dict[str, str | None]:
        """Return the PriorityFlags where one ends against which an order by shares would go; others stay."""
        if not (self.config.is_fair and self.parts & {"added", "order"}):
            return {}
        name, words = "PriorityFlags", self.wanted["added"].get("PriorityFlags", [])
        present = [word.strip() for word in self.conf.settings.get(name.lower(), "").split(",")]
        kept = [word for word in present if word.upper() in words or word.upper() not in FLAGS]
        if kept == present:
            return {}
        text = ",".join([*kept, *(word for word in words if word not in map(str.upper, kept))])
        self._row(name, ",".join(present), text, "order")
        return {name: text or None}

    def _parameters(self) -> tuple[dict[str, str], list[str]]:
        """Return the words of SchedulerParameters that change, and those that end."""
        if "parameters" not in self.parts:
            return {}, []
        ours, before = self.wanted["parameters"], self._before("parameters")
        words = self.conf.settings.get("schedulerparameters", "").split(",")
        present = dict(word.partition("=")[::2] for word in words)
        found = {}
        for name, value in ours.items():
            was, now = before.get(name), present.get(name)
            narrow = str(now).isdigit() and int(was or 0) <= int(str(now)) < int(value) if name in WINDOWS else True
            if value not in (was, now) and (was is None or narrow):  # a window that held the longest walltime did more
                found[name] = value
        gone = [name for name in before if name not in ours and name in present]
        for name in [*found, *gone]:
            why = "reservations, backfill"
            self._row(f"SchedulerParameters {name}", present.get(name, ""), found.get(name, ""), why)
        return found, gone

    def _statements(self, file: str) -> list[str]:
        """Return the lines of sacctmgr that differ, and those that lift limits that end."""
        ours, before = self.wanted[file], self._before(file)
        if file == OF_QUEUES:
            ours, before = ([self._for_own_qos(line) for line in lines] for lines in (ours, before))
        kept = {_of(line) for line in ours}
        new = [line for line in ours if line not in before]
        ended = [line for line in before if _is_limit(line) and _of(line) not in kept and not line.endswith(UNLIMITED)]
        new += [f"{_of(line)}-1" for line in ended]
        if file == OF_QUEUES:
            names = {line.split()[2] for line in new}
            for queue in self.config.names:
                present = self._word(queue, "qos")
                if qos_of(queue) in names and present not in ("", qos_of(queue)) and not self.own_qos(queue):
                    self.apart.append(queue)  # the QOS of its partition is that of other partitions, too
            own = {qos_of(name) for name in self.apart}
            new = [*(line for line in ours if line.split()[2] in own), *(n for n in new if n.split()[2] not in own)]
        was = {_of(line): line.rpartition("=")[2] for line in before}
        for line in new:
            head, _, value = line.rpartition("=")
            self._row(head.removeprefix("modify ") or line, was.get(_of(line), ""), value, WHY_LIMITS)
        return new

    def _word(self, partition: str, key: str) -> str:
        return self.words.get(partition, {}).get(key, ("", ""))[1]

    def _for_own_qos(self, line: str) -> str:
        """Write a line for the QOS that the partition of a queue has alone."""
        verb, kind, name, *rest = line.split()
        queue = next((each for each in (*self.config.names, *self.base.names) if qos_of(each) == name), "")
        return " ".join([verb, kind, self.own_qos(queue) or name, *rest])

    def own_qos(self, queue: str) -> str:
        """Name the QOS that the partition of a queue has and no other partition."""
        name = self._word(queue, "qos")
        return name if name and [other for other in self.words if self._word(other, "qos") == name] == [queue] else ""

    def _partitions(self) -> list[str]:
        """Return the lines of all partitions; none where these change in words alone that are the same to Slurm."""
        if not self.words:
            raise ExportError(
                "partitions change, and only slurm.conf itself has all of their words: give it to --current"
            )
        ours: dict[str, Line] = self.wanted["partitions"]
        before: dict[str, Line] = self._before("partitions")
        managed = {*before, *self.base.names}
        begun, lines = len(self.rows), []
        ranked = self._ranks_change(ours, before)
        for name, words in self.words.items():
            if name in managed and name not in ours:
                held = " ".join(f"{key}={value}" for key, value in words.values())
                self._row(f"partition {name}", held, "", "queues")
        default = next((name for name in self.words if self._word(name, "default").upper() == "YES"), "")
        for name, line in ours.items():
            new = {key.lower(): (key, value) for key, value in line.items()}
            old = {key.lower(): value for key, value in before.get(name, {}).items()}
            changed = [key for key in NEUTRAL if name not in before or old.get(key) != new.get(key, ("", None))[1]]
            changed = [key for key in changed if key not in RANKS] + (RANKS if ranked else [])
            if self.own_qos(name):
                changed = [key for key in changed if key != "qos"]
            changed += ["qos"] if name in self.apart else []
            found, rows = merged(self.words.get(name), new, self.default, changed)
            if default and default not in ours and name == next(iter(ours)):
                found["default"] = ("Default", "YES")
                rows.append(("Default", "", "YES"))
            lines.append(written(name, found))
            for key, was, value in rows:
                self._row(f"partition {name}: {key}", was, value, "priority, order" if key in RANK_WORDS else "queues")
        if len(self.rows) == begun:
            return []
        others = {name: words for name, words in self.words.items() if name not in managed and name not in ours}
        return [*lines, *(written(name, words) for name, words in others.items())]

    def _ranks_change(self, ours: dict[str, Line], before: dict[str, Line]) -> bool:
        """Whether tiers and factors are written anew, of all partitions together: they say which goes first."""
        now, was = (
            {name: [line.get(word) for word in RANK_WORDS] for name, line in of.items()} for of in (ours, before)
        )
        if any(was[name] != rank for name, rank in now.items() if name in was):
            return True
        there = {words.get(key, ("", "1"))[1] for words in self.words.values() for key in RANKS}
        return {*now} > {*was} and {each for rank in now.values() for each in rank} | there != {"1"}


WINDOWS = ("bf_window", "bf_window_linear")  #: of SchedulerParameters, by the longest walltime
FLAGS = ("NO_FAIR_TREE", "MAX_TRES")  #: of PriorityFlags: `fair_share` and `charged`
UNLIMITED = ("=-1", " UsageFactor=1")  #: ends of lines of sacctmgr that say what holds without them
WHY_LIMITS = "limits, qualities of service, shares"
RANK_WORDS = ("PriorityTier", "PriorityJobFactor")
RANKS = [word.lower() for word in RANK_WORDS]  #: what says which partitions go before others
#: Weights that an export writes where its order has them.
WEIGHTS = ("PriorityWeightFairshare", "PriorityWeightQOS", "PriorityWeightTRES", "PriorityWeightJobSize")


def _of(line: str) -> str:
    """Return a line of sacctmgr without its value: what it sets of what."""
    head, _, words = line.partition(" set ")
    return f"{head} set {words.rpartition('=')[0]}=" if words else head


def _is_limit(line: str) -> bool:
    return " set " in line and not any(
        word in line for word in ("Flags", "QosLevel", "DefaultQOS", "fairshare", "Priority=")
    )
