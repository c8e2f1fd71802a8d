"""The interface between qconf and a batch system: an `Exporter` for each target.

A folder ``qconf/export/<target>/`` is a target of ``qconf export``, ``tune`` and ``init`` if its ``__init__`` has
`exporter`, a subclass of `Exporter`; no other module names the target. The command line imports that ``__init__`` for
its options, so heavy imports belong inside the methods.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

from qconf.errors import ExportError, InputError

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.config.models import Downtime, ShortpoolConfig
    from qconf.export.estimates import Estimates
    from qconf.export.nodes import Node
    from qconf.export.precision import Jobs
    from qconf.history import History, Records

DEFAULT_TARGET = "pbs"
#: Limits of a queue, each with the name of the counted amount and the scope ("" for all its jobs).
LIMITS = {
    "max_run": ("max_run", ""),
    "max_run_cores": ("max_run_cores", ""),
    "max_user_run": ("max_run", "user"),
    "max_user_cores": ("max_run_cores", "user"),
}
#: Part that an export can change alone (``--only``) -> (fields of the configuration, fields of each queue).
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "order": (("order", "fairshare", "shares", "priority_calc_period"), ("starvation",)),
    "priorities": ((), ("priority",)),
    "limits": (("throttles", "hours", "qos"), (*LIMITS, "billing")),
    "queues": (("routing",), ("cores", "walltime", "access")),
    "partitions": (("mode", "pool", "nodes"), ("partition", "partition_nodes", "reservation", "nodes", "exclusive")),
    "reservations": (
        ("backfill", "reserve", "reserve_after", "reservation_depth", "held_jobs", "shortpools", "downtime"),
        (),
    ),
    "preemption": ((), ("tier", "preempted")),
}


@dataclass(frozen=True)
class Export:
    """A configuration as files for a batch system."""

    files: dict[str, str]  #: text by file name
    #: Differences between batch system and simulator, and other remarks to read before loading.
    notes: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()  #: names of files that are loaded and allow a first comment line with ``#``
    rollback: str = ""  #: name of the file that restores the previous state, "" without one


@dataclass(frozen=True)
class Derived:
    """A configuration derived from the state of a batch system, to be edited, and warnings about that state."""

    config: SiteConfig
    warnings: tuple[str, ...] = ()

    def dedicated(self, downtime: tuple[Downtime, ...], shortpools: tuple[ShortpoolConfig, ...]) -> Derived:
        """Return a copy with downtimes and shortpools; those that the configuration cannot combine become warnings."""
        config, warnings = self.config, [*self.warnings]
        if config.nodes and shortpools:
            warnings.append("shortpools: left out, they name no types of nodes")
            shortpools = ()
        found: dict[str, object] = {}
        if (downtime or shortpools) and config.has_tiers:
            warnings.append("downtime and shortpools: left out, queues of different tiers go without")
        elif downtime or shortpools:
            found = {"downtime": downtime, "shortpools": shortpools}
        return Derived(config.replace(**found), tuple(warnings))


def option(text: str, default: object = None, *, read: Callable[[Any], object] | None = None, **shown: object) -> Any:  # noqa: ANN401
    """Return a dataclass field of an `Exporter`, which the command line offers as an option with help `text`.

    `read` converts the option's word, such as a file name, to the value of the field; `shown` are `metavar` or
    `choices` for click.
    """
    return field(default=default, metadata={"help": text, "read": read, **shown})


def later(module: str, name: str) -> Callable[[Any], Any]:
    """Return a stand-in for function `name` of `qconf.export.<module>` that imports the module when called."""

    def call(given: object) -> object:
        found: Any = importlib.import_module(f"qconf.export.{module}")
        return reduce(getattr, name.split("."), found)(given)

    return call


class Given(TypedDict, total=False):
    """Optional arguments of `Exporter.read`."""

    cores: int | None  #: of the machine, if not known otherwise
    name: str | None  #: of the machine
    shares: str | Path | None  #: file of users' shares
    qos: str | Path | None  #: file of qualities of service
    records: Records | None  #: of a log of the machine's jobs


@dataclass(frozen=True)
class Exporter(ABC):
    """One batch system; its fields are command-line options, repeatable if the default is an empty tuple."""

    target: ClassVar[str]  #: its folder's name, also the value of ``--target`` and the output directory
    name: ClassVar[str]  #: its name in texts
    orders: ClassVar[str] = "formula"  #: the family of orders that `auto` searches
    source: ClassVar[str]  #: name of the input of `read` and of ``--current``: a noun without article
    also: ClassVar[str] = ""  #: what `read` takes in its place
    current_for_rollback: ClassVar[bool] = False  #: whether an undo needs ``--current``

    #: The nodes that the queues may use.
    nodes: Sequence[Node] | None = option(
        "Names: nid[001-146], or a file.", read=later("nodes", "read_nodes"), metavar="FILE|PATTERN"
    )
    estimates: Estimates | None = option(  # noqa: RUF009 - a field
        "Log of jobs, from which an order that reads `estimate` predicts run times.",
        read=later("estimates", "Estimates"),
        metavar="LOG",
    )

    @classmethod
    def of(cls, **given: object) -> Self:
        """Return an exporter with options given as on the command line; reads the files that they name."""
        readers = {each.name: each.metadata["read"] for each in fields(cls)}
        values: dict[str, Any] = {name: (readers[name] or (lambda word: word))(word) for name, word in given.items()}
        return cls(**values)

    def meeting(self, jobs: Jobs, log: History | None = None) -> Self:
        """Return a copy that checks whether the batch system's formula keeps these jobs in order.

        Run times are predicted from `log` if no log was given before.
        """
        of_log = None if log is None else later("estimates", "Estimates")(log)
        found = replace(self, estimates=self.estimates or of_log)
        object.__setattr__(found, "_jobs", jobs)  # no option of the command line
        return found

    @property
    def jobs(self) -> Jobs | None:
        """The jobs to check a formula with, None if not known."""
        return getattr(self, "_jobs", None)

    @property
    def missing(self) -> str:
        """A request for an important file that was not given, "" if none is missing."""
        return ""

    def check(self, config: SiteConfig) -> list[str]:
        """Return the reasons why a configuration is not exportable; empty if it is."""
        try:
            self.export(config)
        except ExportError as error:
            return [str(error)]
        return []

    @abstractmethod
    def export(self, config: SiteConfig) -> Export:
        """Write a configuration as files. Raises `ExportError`; no command is run."""

    def needs(self, config: SiteConfig, base: SiteConfig | None = None) -> list[str]:
        """Return what root must install and keep running beside the batch system, as noun phrases.

        Empty if the batch system needs no help to do what was simulated. An item that `base`, the present
        configuration, also needs is marked as a replacement.
        """
        there = () if base is None else self._scripts(base)
        return [f"{each}, in the place of the present one" if each in there else each for each in self._scripts(config)]

    def _scripts(self, config: SiteConfig) -> tuple[str, ...]:
        """Return the installed scripts of a configuration's export, each with its runner, frequency and reason."""
        del config
        return ()

    @abstractmethod
    def notes(self, config: SiteConfig) -> tuple[str, ...]:
        """Return the differences between batch system and simulator, whatever the present state."""

    @abstractmethod
    def read(self, path: str | Path, **given: Unpack[Given]) -> Derived:
        """Derive a first configuration from a file with the batch system's state, see `source`. Raises InputError."""


def targets() -> tuple[str, ...]:
    """Return the names of the targets: the folders of this package."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)]) if each.ispkg))


def exporter(target: str = DEFAULT_TARGET) -> type[Exporter]:
    """Import the exporter class of a target. Raises InputError, with the known targets, if there is none."""
    if target not in targets():
        fix = f"choose among {', '.join(targets())}"
        raise InputError("no such batch system", field="--target", value=target, fix=fix)
    found: type[Exporter] = importlib.import_module(f"qconf.export.{target}").exporter
    return found


def only(config: SiteConfig, base: SiteConfig | None, parts: Collection[str]) -> SiteConfig:
    """Return `base` with these parts of `config`, or `config` if there are none. Raises ExportError without `base`."""
    if not parts:
        return config
    if base is None:
        raise ExportError("--only changes a part of what a server runs: give that with --current")
    taken = [name for part in parts for name in PARTS[part][0]]
    of_queues = [name for part in parts for name in PARTS[part][1]]
    there = {queue.name: queue for queue in base.queues}
    wanted = {queue.name: queue for queue in config.queues}
    names = wanted if "queues" in parts else there
    queues = tuple(
        there[name].model_copy(update={each: getattr(wanted[name], each) for each in of_queues})
        if name in there and name in wanted
        else wanted.get(name, there.get(name))
        for name in names
    )
    changes: dict[str, object] = {name: getattr(config, name) for name in taken}
    return base.replace(queues=queues, machine=config.machine, **changes)
