"""The walk-forward: train every strategy on one period and evaluate it on the next. For ``qconf backtest``."""

from qconf.backtest.results import AVERAGED as AVERAGED
from qconf.backtest.results import COMPARED as COMPARED
from qconf.backtest.results import CURRENT as CURRENT
from qconf.backtest.results import REFERENCES as REFERENCES
from qconf.backtest.results import Average as Average
from qconf.backtest.results import Backtest as Backtest
from qconf.backtest.results import FoldResult as FoldResult
from qconf.backtest.results import averages as averages
from qconf.backtest.walk_forward import Prepared as Prepared
from qconf.backtest.walk_forward import backtest as backtest
from qconf.backtest.walk_forward import compare as compare
from qconf.backtest.walk_forward import evaluate_all as evaluate_all
from qconf.backtest.walk_forward import prepare_periods as prepare_periods
from qconf.backtest.walk_forward import prepare_two as prepare_two
