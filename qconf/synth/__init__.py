"""Generated workloads: months like the paper's Cray XC40, users who react (`agents`), benchmark streams (`stable`)."""

from qconf.synth.monthly import COLUMNS, generate, generate_month
from qconf.synth.output import markdown, month_table, write_history, write_months
from qconf.synth.presets import PRESETS, preset_named

__all__ = [
    "COLUMNS",
    "PRESETS",
    "generate",
    "generate_month",
    "markdown",
    "month_table",
    "preset_named",
    "write_history",
    "write_months",
]
