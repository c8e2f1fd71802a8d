"""What a run directory holds for the batch system: the export of what is recommended, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qconf.export import Export, Exporter
from qconf.recommend import Recommendation


@dataclass(frozen=True)
class Exported:
    """The export of a recommendation."""

    exporter: Exporter
    export: Export  #: its files lie in a folder of the exporter's target; PLAN.md alone where there are no scripts
    not_exportable: str = ""  #: why there are no scripts

    @classmethod
    def of(cls, recommendation: Recommendation, exporter: Exporter) -> Exported:
        """Export what is recommended; KEEP stands in every file that could be loaded."""
        kept = "" if recommendation.verdict == "CHANGE" else KEPT
        if why := "; ".join(exporter.check(recommendation.config)):
            return cls(exporter, Export({"PLAN.md": NO_SCRIPTS.format(name=exporter.name, kept=kept, why=why)}), why)
        found = exporter.export(recommendation.config)
        title, _, rest = found.files["PLAN.md"].partition("\n")
        files = found.files | {"PLAN.md": f"{title}\n{kept}{rest}"}
        if kept:
            files |= {name: f"{KEPT_SCRIPT}{files[name]}" for name in found.loaded}
        return cls(exporter, replace(found, files=files))


KEPT = """
> **KEEP: nothing to load.** Nothing did better than the current configuration beyond doubt. This is what the
> scripts for the configuration *as it stands* look like, for reference.
"""
KEPT_SCRIPT = "# KEEP: nothing to load. For reference, the configuration as it stands.\n"
NO_SCRIPTS = """# No scripts for {name}
{kept}
This configuration is not exportable to {name}, so no script was written, not even in part:

    {why}

The configuration is in `../config.yaml`. Change what the message names and run `qconf export` on it.
"""
