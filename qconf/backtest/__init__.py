"""The walk-forward: every strategy learns from one period and is judged on the next."""

from qconf.backtest.results import (
    AVERAGED,
    COMPARED,
    REFERENCES,
    Against,
    Average,
    Backtest,
    Fold,
    FoldResult,
    averages,
    reduction,
)
from qconf.backtest.walk_forward import WARMUP_DAYS, backtest, compare, join, judge
from qconf.history.history import FEWEST

__all__ = [
    "AVERAGED",
    "COMPARED",
    "FEWEST",
    "REFERENCES",
    "WARMUP_DAYS",
    "Against",
    "Average",
    "Backtest",
    "Fold",
    "FoldResult",
    "averages",
    "backtest",
    "compare",
    "join",
    "judge",
    "reduction",
]
