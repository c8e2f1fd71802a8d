"""The distribution: a complete sdist, and a wheel that works in a new environment, outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import qconf

ROOT = Path(__file__).resolve().parents[1]
#: Top-level folders of the checkout that qconf reads at run time.
SHARED = ("data", "configs")


def run(command: list[str | Path], cwd: Path, **variables: str) -> str:
    """Run a command without the import settings of the test environment, and return its output."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=inherited | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked() -> set[str]:
    """Return the existing files that git tracks."""
    names = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the sdist, built from the checkout, and the wheel, built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], ROOT)
    return folder


@pytest.fixture(scope="module")
def sdist(built: Path) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment with the wheel, and the dependencies of the test environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    interpreter = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], folder)
    site = Path(run([interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies) + "\n")
    return interpreter


def test_the_sdist_holds_every_file_of_the_checkout(sdist: set[str]) -> None:
    assert tracked() - sdist == set()


def test_the_sdist_holds_nothing_that_is_made_here(sdist: set[str]) -> None:
    made = {name for name in sdist if name.startswith((".venv", ".git/", "build/", "dist/")) or "__pycache__" in name}
    assert made == set()


def test_the_wheel_holds_both_packages_and_the_sample(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = {name for name in tracked() if name.startswith(("parsim/", "qconf/"))}
    shared = {f"qconf/share/{name}" for name in tracked() if name.startswith(tuple(f"{each}/" for each in SHARED))}
    installed = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert packages | shared <= installed
    assert {name.partition("/")[0] for name in installed} == {"parsim", "qconf"}  # no tests, no studies


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        about = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        license_text = archive.read(f"{info}/licenses/LICENSE").decode()
    assert about["Name"] == "qconf-hpc"
    assert about["Version"] == qconf.__version__
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Author"] == "The qconf developers"
    assert license_text == (ROOT / "LICENSE").read_text()


def test_an_editable_install_puts_the_checkout_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hatchling.build import build_editable

    from qconf.history.sample import SAMPLE_CONFIG, SAMPLES

    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as archive:
        installed = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [archive.read(name).decode().strip() for name in installed] == [str(ROOT)]
    assert SAMPLES[0].is_relative_to(ROOT)  # these tests run in such an install, or in the checkout itself
    assert all(each.is_file() for each in SAMPLES)
    assert SAMPLE_CONFIG.is_file()


def test_the_installed_command_finds_the_sample(python: Path, tmp_path: Path) -> None:
    code = "import qconf; from qconf.history.sample import *; print(qconf.__file__, SAMPLES[1], SAMPLE_CONFIG)"
    package, history, config = map(Path, run([python, "-c", code], tmp_path).split())
    assert not package.is_relative_to(ROOT)
    assert history.is_relative_to(package.parent)
    assert config.is_relative_to(package.parent)
    command = python.with_name("qconf")
    assert f"version {qconf.__version__}" in run([command, "--version"], tmp_path)
    assert "sample" in run([command, "tune", "--help"], tmp_path)
    assert "7282 jobs" in run([command, "inspect", history, "--config", config], tmp_path)


def test_tune_works_where_the_wheel_is_installed(python: Path, tmp_path: Path) -> None:
    share_kernels(python)
    printed = run([python.with_name("qconf"), "tune", "--strategies", "fcfs-easy"], tmp_path)
    assert "7282 jobs from 2016-02-01 to 2016-02-29 on cray-xc40" in printed
    assert (tmp_path / "reports" / "cray-xc40-2016-02" / "report.html").is_file()
    assert (tmp_path / "reports" / "cray-xc40-2016-02" / "pbs" / "PLAN.md").is_file()


@pytest.mark.slow
def test_tune_with_all_defaults_works_where_the_wheel_is_installed(python: Path, tmp_path: Path) -> None:
    printed = run([python.with_name("qconf"), "tune", "-o", "run"], tmp_path)
    assert "CHANGE: " in printed
    assert (tmp_path / "run" / "report.html").is_file()


def share_kernels(python: Path) -> None:
    """Copy the checkout's compiled kernels to the installed packages; numba uses them if the source is the same.

    It compares the time of the source file and its size.
    """
    site = Path(run([python, "-c", "import qconf; print(qconf.__path__[0])"], python.parent).strip()).parent
    for compiled in (*ROOT.glob("parsim/**/*.nb[ic]"), *ROOT.glob("qconf/**/*.nb[ic]")):
        target = site / compiled.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(compiled, target)
    for source in (*ROOT.glob("parsim/**/*.py"), *ROOT.glob("qconf/**/*.py")):
        installed = site / source.relative_to(ROOT)
        assert installed.read_bytes() == source.read_bytes()
        shutil.copystat(source, installed)
