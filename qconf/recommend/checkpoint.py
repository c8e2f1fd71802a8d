"""Checkpoint of a run: finished work in one file for each piece, valid for one fingerprint only."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from qconf import __version__
from qconf.config import SiteConfig, dump, parse
from qconf.errors import InputError, QconfError
from qconf.evaluation.period import NotApplicableError, UnroutableError
from qconf.history.records import SourceInfo
from qconf.strategies import Proposal
from qconf.strategies.base import Recorded
from qconf.text import SCRATCH, replace_file, write_whole

FOLDER = ".unfinished"
FINGERPRINT = "fingerprint"
LIBRARIES = ("numba", "numpy", "pandas", "scikit-learn", "scipy")
Proposals = Mapping[str, Proposal]  #: proposals of one strategy, by variant
Numbers = NDArray[np.float64]  #: the measures on the resamples
Failure = NotApplicableError | UnroutableError  #: why there is no proposal
Chunk = list[Numbers | Failure]  #: the results of some resamples, by proposal
Finished = Proposals | Numbers | Failure | Chunk  #: one piece of work: a training, or some resamples
F = TypeVar("F", bound=Finished)

#: Text fields of a proposal.
_TEXTS = ("not_exportable", "title", "not_yet")
#: Parts of a fingerprint in words; the others are options.
_PARTS = {"inputs": "the log", "config": "the configuration"} | dict.fromkeys(
    ("span", "spans", "periods"), "the period"
)


def versions() -> dict[str, str]:
    """Return the versions of qconf, Python and the libraries that results depend on."""
    return {"qconf": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def unfinished(directory: Path) -> bool:
    """Return whether a run directory holds finished work of an incomplete run."""
    return any((directory / FOLDER).glob("*.json"))


class Checkpoint:
    """Keeps finished work in a folder of the run directory until the run is complete.

    The `fingerprint` has everything that results depend on: inputs' sha256, configuration, settings, versions. With
    `resume` existing work is used; raises InputError with the differences if it has another fingerprint. Without
    `resume` it is deleted.

    Workers get the checkpoint and store each piece when it is finished. A worker on another machine may not reach the
    folder; the process that began the run stores what that worker returns.
    """

    def __init__(self, directory: Path, fingerprint: Mapping[str, Any], *, resume: bool) -> None:
        text = json.dumps(fingerprint, sort_keys=True, default=str)
        self.key = _hash(text.encode())
        self.folder = directory.absolute() / FOLDER
        self.note = ""  #: a sentence about the run before this one, for the user
        if unfinished(directory):
            if not resume:
                self.note = "what an interrupted run had finished here is deleted: --resume would have gone on from it"
                self._delete()
            elif different := list(_differences(self._recorded(), json.loads(text))):
                raise InputError(
                    f"another run was interrupted here, which differs in {', '.join(different)}",
                    file=directory,
                    fix="give what it had to go on from it, choose another directory with --out, or leave --resume out "
                    "to delete what it had finished",
                )
        elif resume:
            self.note = "no interrupted run has finished anything here: this one starts at its beginning"
        write_whole(self.folder / FINGERPRINT, text)

    def _recorded(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / FINGERPRINT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def kept(self, key: str, work: Callable[[], F]) -> F:
        """Return finished work; if there is none, do the work and store its result."""
        found = self.get(key)
        if found is None:
            found = work()
            self.put(key, found)
        return found  # type: ignore[return-value]

    def get(self, key: str) -> Finished | None:
        """Return finished work, or None."""
        path = self._path(key)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["fingerprint"] == self.key:
                return _read(kept, path)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, QconfError):
            pass
        path.unlink(missing_ok=True)  # the work is done again and stored here
        return None

    def put(self, key: str, finished: Finished) -> None:
        """Store finished work that a worker could not store.

        A proposal that is not a plain configuration is not stored: it takes no time to make.
        """
        path = self._path(key)
        if not path.exists() and self._is_here() and (kept := _written(finished)) is not None:
            replace_file(path, json.dumps({"fingerprint": self.key, **kept}))

    def _is_here(self) -> bool:
        """Return whether the folder is still this run's: it may be out of reach, or another run's by now."""
        try:
            return _hash((self.folder / FINGERPRINT).read_bytes()) == self.key
        except OSError:
            return False

    def _path(self, key: str) -> Path:
        return self.folder / f"{quote(key, safe=' ()')}.json"

    def _delete(self) -> None:
        for path in self.folder.glob("*.json"):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete all work at once: the run is complete."""
        gone = self.folder.with_name(f"{SCRATCH}gone")
        shutil.rmtree(gone, ignore_errors=True)
        with suppress(OSError):
            self.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Name the differences between two fingerprints."""
    if not before:
        yield "the version of qconf"
        return
    for part in sorted({*before, *now}):
        then, this = before.get(part), now.get(part)
        if isinstance(then, dict) and isinstance(this, dict):
            names = [name for name in sorted({*then, *this}) if then.get(name) != this.get(name)]
            yield from (f"the version of {name}" if part == "versions" else _option(name) for name in names)
        elif then != this:
            yield _PARTS.get(part) or _option(part)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _written(finished: Finished) -> dict[str, Any] | None:
    if isinstance(finished, list):
        return {"chunk": [_written(each) for each in finished]}
    if isinstance(finished, np.ndarray):
        return {"numbers": finished.tolist()}
    if isinstance(finished, QconfError):
        return {"unroutable" if isinstance(finished, UnroutableError) else "not_applicable": str(finished)}
    if any(each.system is not None or type(each) is not Proposal for each in finished.values()):
        return None
    return {"proposals": {name: _proposal(each) for name, each in finished.items()}}


def _proposal(proposal: Proposal) -> dict[str, Any]:
    names = (*_TEXTS, "runtimes", "lowered")
    return {name: getattr(proposal, name) for name in names} | {
        "config": dump(proposal.config),
        "steps": proposal.decisions,
    }


def _read(kept: Mapping[str, Any], path: Path) -> Finished:
    if "chunk" in kept:
        return [_read(each, path) for each in kept["chunk"]]  # type: ignore[misc]
    if "numbers" in kept:
        return np.array(kept["numbers"], dtype=np.float64)
    if "unroutable" in kept:
        return UnroutableError(kept["unroutable"])
    if "not_applicable" in kept:
        return NotApplicableError(kept["not_applicable"])
    return {name: _read_proposal(each, path) for name, each in kept["proposals"].items()}


def _read_proposal(kept: Mapping[str, Any], path: Path) -> Proposal:
    return Proposal(
        parse(kept["config"], str(path)),
        tuple(Recorded(notes=tuple(values.get("notes", ())), values=values) for values in kept["steps"]),
        runtimes=kept["runtimes"] and tuple((above, most) for above, most in kept["runtimes"]),
        lowered=tuple(kept["lowered"]),
        **{name: kept[name] for name in _TEXTS},
    )


def fingerprint(
    sources: Sequence[SourceInfo], config: SiteConfig, settings: Mapping[str, Any], **more: object
) -> dict[str, Any]:
    """Return all that results depend on, for `Checkpoint`: everything but the number of workers."""
    kept = {name: value for name, value in settings.items() if name != "workers"}
    inputs = [source.sha256 for source in sources]
    return {"versions": versions(), "inputs": inputs, "config": dump(config), "settings": kept, **more}
