"""The value of a configuration, for `recommend` and `backtest`: simulated periods, metrics, scores, confidence."""
