"""The walk-forward: every strategy is trained on one period and evaluated on the next."""

from qconf.backtest.results import AVERAGED, COMPARED, CURRENT, REFERENCES, Average, Backtest, FoldResult, averages
from qconf.backtest.walk_forward import Prepared, backtest, compare, evaluate_all, prepare_periods, prepare_two

__all__ = [
    "AVERAGED",
    "COMPARED",
    "CURRENT",
    "REFERENCES",
    "Average",
    "Backtest",
    "FoldResult",
    "Prepared",
    "averages",
    "backtest",
    "compare",
    "evaluate_all",
    "prepare_periods",
    "prepare_two",
]
