"""Folders beside the project: logs, reference schedules, files of servers. Tests of them are skipped without."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
REFERENCE = SHARED / "reference"
TRACES = SHARED / "traces"
