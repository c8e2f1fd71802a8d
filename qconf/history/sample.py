"""The sample that comes with the package: three generated months in a row, and the configuration of their machine."""

from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(str(files("qconf")))
#: Folder of `data` and `configs`: in the package where a wheel is installed, beside it in a checkout.
_SHARE = next(folder for folder in (_PACKAGE / "share", _PACKAGE.parent) if folder.is_dir())

#: That is tuned unless another is named; the month before it is known, and the one after it is to come.
MONTH = "2016-02"
SAMPLES = tuple(_SHARE / "data" / f"cray-xc40-{month}.csv.gz" for month in ("2016-01", MONTH, "2016-03"))
SAMPLE_CONFIG = _SHARE / "configs" / "cray-xc40.yaml"


def known(month: str | None) -> tuple[Path, ...]:
    """Return the months of the sample that are over when a month has ended; all of them where none is named."""
    return tuple(path for path in SAMPLES if month is None or path.name <= f"cray-xc40-{month}.csv.gz") or SAMPLES
