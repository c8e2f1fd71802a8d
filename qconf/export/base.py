"""The contract between qconf and a batch system: one folder of this package, one class, one registry.

A folder ``qconf/export/<target>/`` whose ``__init__`` has an `exporter`, a subclass of `Exporter`, is a target of
``qconf export``, ``tune`` and ``init``; no other module names it. The command line imports that ``__init__`` for its
options, so it imports what is heavy inside its methods.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Export:
    """A configuration as files for a batch system."""

    files: dict[str, str]  #: file name to text
    #: What the batch system does otherwise than the simulator, and what else to know before loading.
    notes: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()  #: files that are loaded and may begin with a comment after ``#``
    rollback: str = ""  #: file that restores what was there; empty if there is none


@dataclass(frozen=True)
class Derived:
    """A configuration to edit, derived from what a batch system holds, and warnings about what was found there."""

    config: SiteConfig
    warnings: tuple[str, ...] = ()

    def dedicated(self, downtime: tuple[Downtime, ...], shortpools: tuple[ShortpoolConfig, ...]) -> Derived:
        """Return it with cores that are kept from jobs; a warning where these are not simulated with what there is."""
        config, warnings = self.config, [*self.warnings]
        if config.nodes and shortpools:
            warnings.append("shortpools: left out, they name no types of nodes")
            shortpools = ()
        found: dict[str, object] = {"downtime": downtime, "shortpools": shortpools}
        several = config.reserves_for_queues or config.reservation_depth != 1
        if not (downtime or shortpools):
            found = {}
        elif config.has_tiers:
            warnings.append("downtime and shortpools: left out, queues of different tiers go without")
            found = {}
        elif several and (shortpools or any(each.users for each in downtime)):
            what = "shortpools" if shortpools else "reservations for users"
            warnings.append(f"reservations of several jobs: with {what} one for all is simulated")
            found |= {"reserve": "cores", "reservation_depth": 1}
        return Derived(config.replace(**found), tuple(warnings))


def option(text: str, default: object = None, *, read: Callable[[Any], object] | None = None, **shown: object) -> Any:  # noqa: ANN401
    """Return a field of an `Exporter`, from which the command line makes an option with help `text`.

    `read` makes the field's value of the word on the command line, which may name a file; `shown` is what click takes
    as `metavar` or `choices`.
    """
    return field(default=default, metadata={"help": text, "read": read, **shown})


def later(module: str, name: str) -> Callable[[Any], Any]:
    """Return a function of a module of this package, which is imported when the function is called."""

    def call(given: object) -> object:
        found: Any = importlib.import_module(f"qconf.export.{module}")
        return reduce(getattr, name.split("."), found)(given)

    return call


class Given(TypedDict, total=False):
    """What `Exporter.read` is told beside what the batch system holds."""

    cores: int | None  #: of the machine, where nothing else says them
    name: str | None  #: of the machine
    shares: str | Path | None  #: a file that has those of users
    qos: str | Path | None  #: a file that has the qualities of service
    records: Records | None  #: of a log of its jobs


@dataclass(frozen=True)
class Exporter(ABC):
    """One batch system; the fields are its options. A default that is an empty tuple: the option may be repeated."""

    target: ClassVar[str]  #: name of its folder, of the option ``--target`` and of the directory of its files
    name: ClassVar[str]  #: in texts
    orders: ClassVar[str] = "formula"  #: the family of orders that `auto` searches for it
    source: ClassVar[str]  #: what `read` takes, and ``--current`` where there is that option: a noun without article
    current_for_rollback: ClassVar[bool] = False  #: whether an export without ``--current`` cannot be taken back

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
        """Return an exporter with these options, words of the command line; files that they name are read."""
        readers = {each.name: each.metadata["read"] for each in fields(cls)}
        values: dict[str, Any] = {name: (readers[name] or (lambda word: word))(word) for name, word in given.items()}
        return cls(**values)

    def meeting(self, jobs: Jobs, log: History | None = None) -> Self:
        """Return an exporter that looks whether its batch system keeps these jobs in the order of a configuration.

        Where it was given no log to predict run times from, it takes this one.
        """
        of_log = None if log is None else later("estimates", "Estimates")(log)
        found = replace(self, estimates=self.estimates or of_log)
        object.__setattr__(found, "_jobs", jobs)  # no option of the command line
        return found

    @property
    def jobs(self) -> Jobs | None:
        """The jobs that a formula may meet, where they are known."""
        return getattr(self, "_jobs", None)

    @property
    def missing(self) -> str:
        """What of the batch system is not given beside what is, and matters; empty if all is there."""
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
        """Name what root must install and keep running beside the batch system for it to do what was simulated.

        One noun phrase each; empty if the batch system does it by itself. What `base`, the configuration in force,
        needs as well is there already and is replaced.
        """
        there = () if base is None else self._scripts(base)
        return [f"{each}, in the place of the present one" if each in there else each for each in self._scripts(config)]

    def _scripts(self, config: SiteConfig) -> tuple[str, ...]:
        """Name the scripts that an export of this configuration has, each with what runs it, how often, and why."""
        del config
        return ()

    @abstractmethod
    def notes(self, config: SiteConfig) -> tuple[str, ...]:
        """Name what the batch system does otherwise than the simulator, whatever it holds now."""

    @abstractmethod
    def read(self, path: str | Path, **given: Unpack[Given]) -> Derived:
        """Derive a first configuration from what the batch system holds, `source`. Raises InputError."""


def targets() -> tuple[str, ...]:
    """Name the batch systems that there are: the folders of this package."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)]) if each.ispkg))


def exporter(target: str = DEFAULT_TARGET) -> type[Exporter]:
    """Import the exporter of a target. Raises InputError, naming the targets, if there is none."""
    if target not in targets():
        fix = f"choose among {', '.join(targets())}"
        raise InputError("no such batch system", field="--target", value=target, fix=fix)
    found: type[Exporter] = importlib.import_module(f"qconf.export.{target}").exporter
    return found
