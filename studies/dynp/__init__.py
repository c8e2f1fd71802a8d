"""What planning schedulers would give: tables side by side, switching, load sweeps, grids of bounds."""

from studies.dynp.jobsets import JOB_SETS, JobSet, generate_job_set
from studies.dynp.study import (
    DISCIPLINES,
    FACTORS,
    GRID_LOWER,
    GRID_UPPER,
    SWEPT,
    Row,
    bounds_grid,
    compare,
    shrunk,
    sweep,
)

__all__ = [
    "DISCIPLINES",
    "FACTORS",
    "GRID_LOWER",
    "GRID_UPPER",
    "JOB_SETS",
    "SWEPT",
    "JobSet",
    "Row",
    "bounds_grid",
    "compare",
    "generate_job_set",
    "shrunk",
    "sweep",
]
