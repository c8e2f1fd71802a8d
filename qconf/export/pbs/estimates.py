"""Predicted run times in PBS: a resource of jobs that a hook sets from a table, and that formulas read; and back.

References
----------
OpenPBS Administrator's Guide, "Custom Resources"; Hooks Guide, "queuejob", "Hook Configuration Files".
"""

from __future__ import annotations

import re

HOOK = "qconf_estimate"
FILE = f"{HOOK}.py"
RESOURCE = "estimate"
OF_JOBS = {"type": "long", "flag": "r"}  #: users may read it
_EXPECTED = "(min(estimate, walltime) if estimate > 0 else walltime)"


def in_pbs(text: str) -> str:
    """Write a formula as PBS's, where a job without a prediction has 0."""
    return re.sub(r"\bestimate\b", _EXPECTED, text)


def from_pbs(text: str) -> str:
    """Write a formula of PBS in the configuration's names."""
    return text.replace(_EXPECTED, "estimate")
