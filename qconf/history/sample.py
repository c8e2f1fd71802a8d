"""The sample that comes with the package: a generated period of jobs, and the configuration of its machine."""

from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(str(files("qconf")))
#: Folder of `data` and `configs`: in the package where a wheel is installed, beside it in a checkout.
_SHARE = next(folder for folder in (_PACKAGE / "share", _PACKAGE.parent) if folder.is_dir())

SAMPLE = _SHARE / "data" / "cray-xc40-2016-02.csv.gz"
SAMPLE_CONFIG = _SHARE / "configs" / "cray-xc40.yaml"
