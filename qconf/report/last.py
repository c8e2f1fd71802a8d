"""What became of the recommendation before this one, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from qconf.evaluation.score import means
from qconf.recommend.last import Realised
from qconf.report.wording import date, gain_text, hours, interval_text, longest_text


def last_lines(found: Realised) -> Iterator[str]:
    """Say what an earlier run promised, and what became of it."""
    promise, promised = found.promise, found.promise.gain
    first, last = (date(second, found.timezone)[:10] for second in promise.span[1:])
    if promised is None:
        yield f"{first} to {last}: {promise.verdict}, so nothing was promised"
        return
    what = f"{promise.winner} ({promise.title})" if promise.title else promise.winner
    yield f"{first} to {last}: {promise.verdict} to {what}, promised gain {interval_text(promised)} %"
    if found.gain is None or found.before is None or found.after is None:
        yield f"on the jobs of this log it cannot be evaluated: {found.not_evaluated}"
    else:
        where = "inside" if found.inside else "below" if found.gain < promised.low else "above"
        waits = " -> ".join(hours(means(each)[0]) for each in (found.before, found.after))
        yield (
            f"on {found.span[0]} jobs since: gain {gain_text(found.gain)} %, {where} the interval; mean wait {waits} h"
            ", " + longest_text(found.before["max_wait"], found.after["max_wait"])
        )
    yield {
        True: "it is in force: the configuration given is the one that was recommended",
        False: "it is not in force: the configuration given is the one from before it",
        None: "whether it was loaded cannot be told from the configuration of this run",
    }[found.loaded]
