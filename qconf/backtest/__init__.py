"""The walk-forward: every strategy is trained on one period and evaluated on the next."""

from qconf.backtest.results import AVERAGED, COMPARED, CURRENT, REFERENCES, Average, Backtest, FoldResult, averages
from qconf.backtest.walk_forward import Walk, backtest, compare, walk_periods, walk_two, walked

__all__ = [
    "AVERAGED",
    "COMPARED",
    "CURRENT",
    "REFERENCES",
    "Average",
    "Backtest",
    "FoldResult",
    "Walk",
    "averages",
    "backtest",
    "compare",
    "walk_periods",
    "walk_two",
    "walked",
]
