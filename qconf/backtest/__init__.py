"""The walk-forward: every strategy is trained on one period and evaluated on the next."""

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
from qconf.backtest.walk_forward import WARMUP_DAYS, backtest, compare, evaluate
from qconf.history.periods import FEWEST

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
    "evaluate",
    "reduction",
]
