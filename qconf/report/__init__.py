"""Recommendations, backtests and predictions for people: terminal tables, figures, and pages that open offline."""
