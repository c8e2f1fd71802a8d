"""What strategies compute is on disk after it was compiled, and loads without what compiles it."""

import subprocess
import sys


def test_what_strategies_compute_loads_without_what_compiles_it():
    heavy = "print(*{'numba.np.arraymath', 'numba.np.npyimpl', 'scipy.linalg'} & set(sys.modules))"
    load = [sys.executable, "-c", f"import sys; from qconf.strategies.compiling import load; load(); {heavy}"]
    subprocess.run(load, check=True, capture_output=True)  # which may compile
    assert subprocess.run(load, check=True, capture_output=True, text=True).stdout.split() == []
