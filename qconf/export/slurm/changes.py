"""Changes of an export: all settings of a configuration, or those that differ from a present slurm.conf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.slurm import shortpools
from qconf.export.slurm.conf import Conf, is_yes
from qconf.export.slurm.desired import OF_QUEUES, STATEMENTS, Desired
from qconf.export.slurm.merging import alike, merged, partitions_of, written
from qconf.export.slurm.queues import NEUTRAL, Line, qos_of
from qconf.export.slurm.queues import written as line_of
from qconf.export.slurm.settings import SHIPPED

ORDER_KEPT = "PriorityWeightPartition"  #: useless if job_submit.lua changes no priorities


class Row(NamedTuple):
    """A setting that changes; `old` or `new` is empty for a setting without a value."""

    setting: str
    old: str
    new: str
    why: str


@dataclass(frozen=True)
class Changes:
    """Changes to load; `rows` is empty if the present settings are unknown."""

    lines: Sequence[str]  #: of partitions.conf; empty if no partition changes
    settings: Mapping[str, str | None]  #: of slurm.conf; None removes a setting
    added: Mapping[str, Sequence[str]]  #: words that lists of slurm.conf gain
    parameters: Mapping[str, str]  #: of SchedulerParameters
    dropped: Sequence[str]  #: words to remove from SchedulerParameters
    statements: Mapping[str, Sequence[str]]  #: commands of sacctmgr, by file of the export
    routes: bool  #: whether job_submit.lua routes jobs without a partition
    lua: bool  #: whether there is a job_submit.lua
    parts: frozenset[str]  #: names of the parts of `Desired` that change
    rows: Sequence[Row] = ()

    @property
    def conf(self) -> bool:
        """Whether slurm.conf, partitions.conf or job_submit.lua changes."""
        return bool(self.lines or self.settings or self.added or self.parameters or self.dropped or self.lua)

    @property
    def moves(self) -> bool:
        """Whether partitions or priorities of waiting jobs may change."""
        return bool(self.lines or self.lua or self.parts & {"order"})

    def __bool__(self) -> bool:
        return bool(self.conf or self.statements or self.parts & {hours.FILE, shortpools.FILE})


def everything(wanted: Desired) -> Changes:
    """Return all settings of a configuration, for a site whose slurm.conf is unknown. Raises ExportError."""
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
    """Differences between `theirs`, the configuration read from a slurm.conf, and `wanted`."""

    def __init__(self, conf: Conf, theirs: Desired, wanted: Desired) -> None:
        self.conf, self.theirs, self.wanted = conf, theirs, wanted
        self.base, self.config = theirs.config, wanted.config
        self.rows: list[Row] = []
        self.apart: list[str] = []  #: queues that need their own QOS instead of a shared one
        self.words, self.default = partitions_of(conf.lines_of_partitions)
        self.parts = frozenset(name for name, part in wanted.parts.items() if part != theirs.parts.get(name))

    def changes(self) -> Changes:
        """Compare all parts. Raises ExportError for a change that Slurm cannot express."""
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

    def _before(self, part: str) -> Any:  # noqa: ANN401 - each part has its own type
        """Return the present value of a part; an empty one if it has another type than the wanted value."""
        found = self.theirs.parts[part]
        return found if isinstance(found, type(self.wanted[part])) else type(self.wanted[part])()

    def _settings(self) -> dict[str, str | None]:
        """Return new values of settings, None to remove one. Weights of the order share a scale: all are written."""
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
        """Return the words that lists of slurm.conf gain, by setting; not of those in `settings`."""
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
        """Return PriorityFlags with those of `FLAGS` that the order by shares needs; empty if it has no others."""
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
        """Return new values of words in SchedulerParameters, and the words to remove."""
        if "parameters" not in self.parts:
            return {}, []
        ours, before = self.wanted["parameters"], self._before("parameters")
        words = self.conf.settings.get("schedulerparameters", "").split(",")
        present = dict(word.partition("=")[::2] for word in words)
        found = {}
        for name, value in ours.items():
            was, now = before.get(name), present.get(name)
            narrow = str(now).isdigit() and int(was or 0) <= int(str(now)) < int(value) if name in WINDOWS else True
            if value not in (was, now) and (was is None or narrow):  # a window that covers the longest walltime is kept
                found[name] = value
        gone = [name for name in before if name not in ours and name in present]
        for name in [*found, *gone]:
            why = "reservations, backfill"
            self._row(f"SchedulerParameters {name}", present.get(name, ""), found.get(name, ""), why)
        return found, gone

    def _statements(self, file: str) -> list[str]:
        """Return the sacctmgr commands that are new in a file, and commands that remove old limits."""
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
                    self.apart.append(queue)  # other partitions share the QOS of its partition
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
        """Return the command with the queue's QOS replaced by its partition's present one, if no other has that."""
        verb, kind, name, *rest = line.split()
        queue = next((each for each in (*self.config.names, *self.base.names) if qos_of(each) == name), "")
        return " ".join([verb, kind, self.own_qos(queue) or name, *rest])

    def own_qos(self, queue: str) -> str:
        """Return the QOS of the queue's partition, or "" if other partitions share it."""
        name = self._word(queue, "qos")
        return name if name and [other for other in self.words if self._word(other, "qos") == name] == [queue] else ""

    def _partitions(self) -> list[str]:
        """Return the lines of all partitions; none if all changed words mean the same to Slurm."""
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
        default = next((name for name in self.words if is_yes(self._word(name, "default"))), "")
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
        """Return whether to write tiers and factors of all partitions: they matter relative to each other."""
        now, was = (
            {name: [line.get(word) for word in RANK_WORDS] for name, line in of.items()} for of in (ours, before)
        )
        if any(was[name] != rank for name, rank in now.items() if name in was):
            return True
        there = {words.get(key, ("", "1"))[1] for words in self.words.values() for key in RANKS}
        return {*now} > {*was} and {each for rank in now.values() for each in rank} | there != {"1"}


WINDOWS = ("bf_window", "bf_window_linear")  #: words of SchedulerParameters that follow the longest walltime
FLAGS = ("NO_FAIR_TREE", "MAX_TRES")  #: of PriorityFlags: `fair_share` and `charged`
UNLIMITED = ("=-1", " UsageFactor=1")  #: ends of sacctmgr commands that set a default
WHY_LIMITS = "limits, qualities of service, shares"
RANK_WORDS = ("PriorityTier", "PriorityJobFactor")
RANKS = [word.lower() for word in RANK_WORDS]  #: words that order the partitions
#: Weights that an export writes if its order has them.
WEIGHTS = ("PriorityWeightFairshare", "PriorityWeightQOS", "PriorityWeightTRES", "PriorityWeightJobSize")


def _of(line: str) -> str:
    """Return a sacctmgr command without its value: the object and the attribute that it sets."""
    head, _, words = line.partition(" set ")
    return f"{head} set {words.rpartition('=')[0]}=" if words else head


def _is_limit(line: str) -> bool:
    return " set " in line and not any(
        word in line for word in ("Flags", "QosLevel", "DefaultQOS", "fairshare", "Priority=")
    )
