"""Computations of strategies on single periods, done ahead, in parallel, and once for all training sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qconf.evaluation.period import Period, TrainingSet, cached, insert_result
from qconf.parallel import Shared, parallel_map
from qconf.strategies import wanted_ahead

#: A cached function, the index of a period, the further arguments, the result.
Computed = tuple[Callable[..., Any], int, tuple[Any, ...], Any]


def compute_ahead(
    training: Sequence[TrainingSet],
    names: Sequence[str],
    settings: Mapping[str, Any],
    workers: int,
    meanwhile: Callable[[], object] | None = None,
) -> Shared[list[Computed]]:
    """Compute what strategies need for periods that several of these training sets have.

    With one worker nothing is computed: results are cached anyway. `meanwhile` is passed to `parallel_map`.
    """
    if workers <= 1 or not any(each.earlier for each in training):
        return Shared([])
    counts = Counter(period for each in training for period in (*each.earlier, each.period))
    periods = Shared(periods_of(training))
    place = {period: i for i, period in enumerate(periods.value)}
    questions = dict.fromkeys(
        (function, place[period], args)
        for each in training
        for function, period, args in wanted_ahead(names, each, settings)
        if counts[period] > 1
    )
    longest_first = sorted(questions, key=lambda question: len(periods.value[question[1]]), reverse=True)
    tasks = [(periods, *question) for question in longest_first]
    results = parallel_map(workers, _compute, tasks, processes=True, meanwhile=meanwhile)
    return Shared([(*question, result) for question, result in zip(longest_first, results, strict=True)])


def periods_of(training: Sequence[TrainingSet]) -> tuple[Period, ...]:
    """Return the distinct periods of training sets."""
    return tuple(dict.fromkeys(period for each in training for period in (*each.earlier, each.period)))


def _compute(periods: Shared[tuple[Period, ...]], function: Callable[..., Any], i: int, args: tuple[Any, ...]) -> Any:  # noqa: ANN401
    return function(periods.value[i], *args)


@cached
def learn(ahead: Shared[list[Computed]], training: tuple[TrainingSet, ...]) -> None:
    """Insert the results computed ahead into the caches of their functions; a second call does nothing."""
    periods = periods_of(training)
    for function, i, args, result in ahead.value:
        insert_result(function, periods[i], args, result)
