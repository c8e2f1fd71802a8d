"""Folders beside the project: logs, reference schedules, server files. Without them their tests are skipped."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
REFERENCE = SHARED / "reference"
TRACES = SHARED / "traces"
