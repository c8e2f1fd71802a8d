"""The named strategies, for `recommend`, `backtest` and the command: a training set in, a configuration out.

A module in this package registers its strategies in a tuple ``STRATEGIES``.
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
    """Return all strategies by name, in the order of tables."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(__path__, f"{__name__}.")]
    found: list[Strategy] = [strategy for module in modules for strategy in getattr(module, "STRATEGIES", ())]
    return {strategy.name: strategy for strategy in sorted(found, key=lambda each: each.position)}


def grouped_by_package(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Group strategies by package: those of a package share cached results when they run in one process."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        package = type(registry()[name]).__module__.rpartition(".")[0]
        found[package] = (*found.get(package, ()), name)
    return list(found.values())


def names(*, default: bool = False) -> tuple[str, ...]:
    """Return the strategies' names; with `default` only those that are compared by default."""
    return tuple(name for name, strategy in registry().items() if strategy.default or not default)


def baselines(base: SiteConfig | None = None) -> tuple[str, ...]:
    """Return the names of the strategies that tune nothing; with `base`, those always compared at that site."""
    found = registry().items()
    return tuple(name for name, each in found if (each.baseline if base is None else each.is_baseline_of(base)))


@cache
def option_fields() -> Mapping[str, Field[Any]]:
    """Return the options of all strategies by name, from which the command line makes flags."""
    return {each.name: each for strategy in registry().values() for each in fields(strategy.Options)}


def settings(given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the value of every option, the given one or its default; raise InputError for an unknown name."""
    known, given = option_fields(), dict(given or {})
    for name, value in given.items():
        _one_of("option", name, tuple(known), value)
    return {name: each.default for name, each in known.items()} | given


def propose(name: str, training: TrainingSet, given: Mapping[str, Any] | None = None) -> Proposal:
    """Run the strategy called `name` with the given options.

    Raises InputError as `check` does, and NotApplicableError if the strategy has no proposal for this training set.
    """
    prepared = _prepared(name, training, given)  # which raises for an unknown name
    strategy = registry()[name]
    return strategy.appraised(*prepared, strategy.propose(*prepared)).startable(training.period)


def variants(
    name: str, training: TrainingSet, given: Mapping[str, Any] | None = None, *, appraise: bool = True
) -> Mapping[str, Proposal]:
    """Run the strategy called `name` as `propose` does, and return all of its proposals by variant.

    Proposals that are not shown need no appraisal (`Strategy.appraised`).
    """
    prepared = _prepared(name, training, given)  # which raises for an unknown name
    strategy = registry()[name]
    found = strategy.variants(*prepared)
    return {
        key: (strategy.appraised(*prepared, each) if appraise else each).startable(training.period)
        for key, each in found.items()
    }


def wanted_ahead(names: Sequence[str], training: TrainingSet, given: Mapping[str, Any] | None = None) -> list[Question]:
    """Return the computations that these strategies need for single periods; none if one has no proposal."""
    found: list[Question] = []
    for name in names:
        with suppress(NotApplicableError):  # `propose` raises it again
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
    """Raise InputError, before any work, if a strategy does not exist or an option makes no sense at this site."""
    check_names(wanted)
    chosen = settings(given)
    for strategy in registry().values():
        strategy.Options.of(chosen).check(base)


def check_names(wanted: Sequence[str]) -> None:
    """Raise InputError if a strategy does not exist."""
    for name in wanted:
        _one_of("strategy", name, names(), name)


def _one_of(what: str, name: str, known: Sequence[str], value: object) -> None:
    if name not in known:
        raise InputError(f"no such {what}", field=what, value=value, fix=f"choose among {', '.join(known)}")
