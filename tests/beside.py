"""Where the samples lie that are beside the project and not part of it: logs, schedules, servers' files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
REFERENCE = SHARED / "reference"
TRACES = SHARED / "traces"
