"""The named strategies: a training set in, a configuration out.

Being in this package registers a strategy: every module's ``STRATEGIES`` are collected.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, fields
from functools import cache
from typing import Any

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import NotApplicableError, TrainingSet, in_epochs
from qconf.strategies.base import Options as Options
from qconf.strategies.base import Proposal as Proposal
from qconf.strategies.base import Question as Question
from qconf.strategies.base import Step as Step
from qconf.strategies.base import Strategy as Strategy


@cache
def registry() -> dict[str, Strategy]:
    """Return all strategies by name, in the order in which tables show them."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(__path__, f"{__name__}.")]
    found: list[Strategy] = [strategy for module in modules for strategy in getattr(module, "STRATEGIES", ())]
    return {strategy.name: strategy for strategy in sorted(found, key=lambda each: each.position)}


def gathered(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Gather strategies by package: what those of a package compute, they share where they run together."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        package = type(registry()[name]).__module__.rpartition(".")[0]
        found[package] = (*found.get(package, ()), name)
    return list(found.values())


def names(*, default: bool = False) -> tuple[str, ...]:
    """Return the strategies' names; with `default` those compared unless others are named."""
    return tuple(name for name, strategy in registry().items() if strategy.default or not default)


def baselines(base: SiteConfig | None = None) -> tuple[str, ...]:
    """Return the names of the strategies that tune nothing; of a site with GPU nodes, those for them too."""
    found = registry().items()
    return tuple(name for name, each in found if (each.baseline if base is None else each.is_baseline_of(base)))


@cache
def option_fields() -> Mapping[str, Field[Any]]:
    """Return the options of all strategies by name: what a command line may set."""
    return {each.name: each for strategy in registry().values() for each in fields(strategy.Options)}


def settings(given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the value of every option: the given one, else its default; raise InputError for an unknown name."""
    known, given = option_fields(), dict(given or {})
    for name, value in given.items():
        _one_of("option", name, tuple(known), value)
    return {name: each.default for name, each in known.items()} | given


def propose(name: str, training: TrainingSet, given: Mapping[str, Any] | None = None) -> Proposal:
    """Run the strategy called `name` with the given options.

    Raises InputError as `check` does, and NotApplicableError if it has no proposal for this training set.
    """
    prepared = _prepared(name, training, given)  # which raises for an unknown name
    strategy = registry()[name]
    return strategy.appraised(*prepared, strategy.propose(*prepared)).startable(training.period)


def variants(
    name: str, training: TrainingSet, given: Mapping[str, Any] | None = None, *, appraise: bool = True
) -> Mapping[str, Proposal]:
    """Run the strategy called `name` as `propose` does, and return all of its proposals by variant.

    Where they are not shown they need no appraisal (`Strategy.appraised`).
    """
    prepared = _prepared(name, training, given)  # which raises for an unknown name
    strategy = registry()[name]
    found = strategy.variants(*prepared)
    return {
        key: (strategy.appraised(*prepared, each) if appraise else each).startable(training.period)
        for key, each in found.items()
    }


def wanted_ahead(names: Sequence[str], training: TrainingSet, given: Mapping[str, Any] | None = None) -> list[Question]:
    """Return what these strategies compute of single periods of a training set: nothing where one has no proposal."""
    found: list[Question] = []
    for name in names:
        with suppress(NotApplicableError):  # which `propose` raises again
            found += registry()[name].wanted_ahead(*_prepared(name, training, given))
    return found


def _prepared(name: str, training: TrainingSet, given: Mapping[str, Any] | None) -> tuple[TrainingSet, Options]:
    chosen = settings(given)
    check((name,), chosen, training.base)
    options = registry()[name].Options.of(chosen)
    if training.base.nodes and not registry()[name].any_nodes:
        why = f"nodes are of several types, and {name} goes by numbers of cores, on whatever nodes they are"
        raise NotApplicableError(why)
    now = training.weights, training.epoch_days
    wanted = getattr(options, "weights", now[0]), getattr(options, "epoch_days", now[1])
    return (training if wanted == now else in_epochs(training, *wanted)), options


def check(wanted: Sequence[str], given: Mapping[str, Any], base: SiteConfig) -> None:
    """Raise InputError if there is no such strategy, or an option makes no sense at this site: before any work."""
    check_names(wanted)
    chosen = settings(given)
    for strategy in registry().values():
        strategy.Options.of(chosen).check(base)


def check_names(wanted: Sequence[str]) -> None:
    """Raise InputError if there is no such strategy."""
    for name in wanted:
        _one_of("strategy", name, names(), name)


def _one_of(what: str, name: str, known: Sequence[str], value: object) -> None:
    if name not in known:
        raise InputError(f"no such {what}", field=what, value=value, fix=f"choose among {', '.join(known)}")
