"""A recommendation for people: the terminal's table, figures, and a report that opens anywhere."""

from qconf.report.figures import figures, grouped_bars
from qconf.report.html import render
from qconf.report.tables import comparison_frame, console, print_recommendation, strategies_table

__all__ = [
    "comparison_frame",
    "console",
    "figures",
    "grouped_bars",
    "print_recommendation",
    "render",
    "strategies_table",
]
