"""The walk-forward: train every strategy on one period and evaluate it on the next. For ``qconf backtest``."""

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
