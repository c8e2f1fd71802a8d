"""The export in a run directory: the files for the batch system, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from qconf.config import SiteConfig
from qconf.export import Export, Exporter
from qconf.recommend import Recommendation


@dataclass(frozen=True)
class Exported:
    """The export of a recommendation."""

    exporter: Exporter
    export: Export  #: files for a folder named by the exporter's target; only PLAN.md if there are no scripts
    not_exportable: str = ""  #: why there are no scripts
    #: The export of the best queue configuration, for the folder `QUEUES`, if that is not the recommendation.
    queues: Exported | None = None

    @classmethod
    def of(cls, recommendation: Recommendation, exporter: Exporter) -> Exported:
        """Export the recommendation; if there is nothing to load, each loadable file says so."""
        note = "" if recommendation.proposes else KEPT
        if recommendation.doubts:
            first = recommendation.doubts[0]
            note += DOUBTED.format(what=first.what, cause=first.cause, command=first.command)
        found = cls._of(recommendation.config, exporter, note)
        if not recommendation.proposes:
            files = found.export.files
            files = files | {name: f"{KEPT_SCRIPT}{files[name]}" for name in found.export.loaded}
            found = replace(found, export=replace(found.export, files=files))
        best = recommendation.queues
        if best is None or best.row.config is None or recommendation.recommends_queues:
            return found
        return replace(found, queues=cls._of(best.row.config, exporter, NOT_RECOMMENDED))

    @classmethod
    def _of(cls, config: SiteConfig, exporter: Exporter, note: str) -> Exported:
        """Export a configuration, with a note below the title of its plan."""
        if why := "; ".join(exporter.check(config)):
            return cls(exporter, Export({"PLAN.md": NO_SCRIPTS.format(name=exporter.name, note=note, why=why)}), why)
        found = exporter.export(config)
        title, _, rest = found.files["PLAN.md"].partition("\n")
        return cls(exporter, replace(found, files=found.files | {"PLAN.md": f"{title}\n{note}{rest}"}))

    def record(self) -> dict[str, Any]:
        """Return the export's entry in run.json."""
        return {
            "target": self.exporter.target,
            "not_exportable": self.not_exportable,
            "notes": self.export.notes,
            "rollback": bool(self.export.rollback),
        }


QUEUES = "queues"  #: folder of a run directory with the best queue configuration and its export
NOT_RECOMMENDED = """
> **The best queue configuration, not the recommendation.** `../run.json` and `../report.html` have what it gains, and
> what it costs against what is recommended. Load one of both.
"""
KEPT = """
> **KEEP: nothing to load.** Nothing did better than the current configuration beyond doubt. This is what the
> scripts for the configuration *as it stands* look like, for reference.
"""
DOUBTED = """
> **CHECK before you load this:** {what}. Likeliest cause: {cause}. To settle it: `{command}`.
"""
KEPT_SCRIPT = "# KEEP: nothing to load. For reference, the configuration as it stands.\n"
NO_SCRIPTS = """# No scripts for {name}
{note}
This configuration is not exportable to {name}, so no script was written, not even in part:

    {why}

The configuration is the `config.yaml` of this run. Change what the message names and run `qconf export` on it.
"""
