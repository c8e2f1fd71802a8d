"""Paths of the packaged sample: three consecutive generated months, and the configuration of their machine."""

from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(str(files("qconf")))
#: Folder of `data` and `configs`: inside the package if installed from a wheel, beside it in a checkout.
_SHARE = next(folder for folder in (_PACKAGE / "share", _PACKAGE.parent) if folder.is_dir())

#: The month that is tuned by default; the sample has one month before it and one after.
MONTH = "2016-02"
SAMPLES = tuple(_SHARE / "data" / f"cray-xc40-{month}.csv.gz" for month in ("2016-01", MONTH, "2016-03"))
SAMPLE_CONFIG = _SHARE / "configs" / "cray-xc40.yaml"


def known(month: str | None) -> tuple[Path, ...]:
    """Return the sample's files up to and including `month`; all if it is None or before the sample."""
    return tuple(path for path in SAMPLES if month is None or path.name <= f"cray-xc40-{month}.csv.gz") or SAMPLES
