"""The same proposals on any processor: a BLAS rounds otherwise on each, and no fit or tie may follow it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from qconf.config import dump
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.history.sample import SAMPLE_CONFIG
from qconf.strategies import propose
from qconf.strategies.auto.estimator import posterior
from qconf.synth import generate_month, write_history

NEARLY_TIED = 2  # a month whose best divisions by SLSQP differed from one processor to the next
#: Kernels of OpenBLAS, with and without fused multiplication, in vectors of 128, 256 and 512 bits; what each needs.
PROCESSORS = {"Prescott": "pni", "Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512vl"}


def digests() -> str:
    """Hash what a BLAS gives, then what strategies give: surrogates, divisions, pools, what orders are worth."""
    from qconf.config import load

    rng = np.random.default_rng(0)
    sums = rng.standard_normal((301, 303)) @ rng.standard_normal((303, 305))
    base = load(SAMPLE_CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        log = write_history(generate_month("cray-xc40", NEARLY_TIED), Path(folder) / "log.csv.gz")
        here = TrainingSet(Period.of(clean(read([log]), base), base))
    proposal = propose("hybrid", here, {"carve": "partitions", "chunk": 1200})
    expected = posterior(rng.standard_normal((23, 4)), rng.standard_normal((41, 23, 4)), [*range(100, 4200, 100)])
    found = (sums.tobytes(), repr((dump(proposal.config), proposal.decisions)), expected.tobytes())
    return "\n".join(hashlib.sha256(each if isinstance(each, bytes) else each.encode()).hexdigest() for each in found)


@pytest.mark.slow
def test_no_processor_gives_another_division() -> None:
    has = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    processors = [name for name in PROCESSORS if PROCESSORS[name] in has]
    assert {"Prescott", "Haswell"} <= {*processors}
    runs = [
        subprocess.run(
            [sys.executable, "-m", __name__],
            env={**os.environ, "OPENBLAS_CORETYPE": name},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout.split()
        for name in processors
    ]
    blas, proposals, worth = zip(*runs, strict=True)
    assert len(set(proposals)) == len(set(worth)) == 1
    if len(set(blas)) == 1:
        pytest.skip("this BLAS has one kernel, whatever OPENBLAS_CORETYPE says")


if __name__ == "__main__":
    print(digests())
