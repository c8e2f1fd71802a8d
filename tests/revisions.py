"""Whether two revisions of the project give the same results: the same commands run in both, their output is compared.

``python -m tests.revisions OLD NEW`` takes two checkouts, and ``--logs FOLDER`` public logs. Words and keys may
differ: of tables and records the numbers are compared, of scripts and configurations all that is no comment.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
CONFIGS = ("cray-xc40", "hpc2n", "kth-sp2", "sdsc-sp2")
STRATEGIES = ("current", "shared", "lxf-easy", "pp", "dp-nlp", "dqr", "hybrid", "mqb", "exact", "planned-sjf", "dynp")
#: An option that both revisions have under another name, the older one first.
RENAMED = {"--format": "--target"}
#: A command that the newer revision has outside qconf.
MOVED = {"policies": "studies.dynp"}
#: Records of times and of files differ by nature; figures have words drawn as outlines.
SKIPPED = re.compile(r"timings\.json|export\.json|.*\.svg|fontlist.*")


def commands(root: Path, logs: Path | None) -> dict[str, list[str]]:
    """Name each command line; ``OUT`` stands for where it writes."""
    sample, cray = str(root / "data/cray-xc40-2016-02.csv.gz"), str(root / "configs/cray-xc40.yaml")
    found = {"tune-sample": ["tune", "-o", "OUT"]}
    for name in STRATEGIES:
        found[f"simulate-{name}"] = ["simulate", "--history", sample, "--config", cray, "--strategy", name, "-o", "OUT"]
    for config in CONFIGS:
        path = str(root / f"configs/{config}.yaml")
        found[f"export-pbs-{config}"] = ["export", path, "-o", "OUT"]
        found[f"export-slurm-{config}"] = ["export", path, "--format", "slurm", "-o", "OUT"]
    found["policies"] = ["policies", "--job-set", "set1", "--json", "-o", "OUT"]
    found["backtest"] = ["backtest", "--history", sample, "--config", cray, "--period", "7d", "-o", "OUT"]
    if logs is not None:
        for name, log, month in (
            ("sdsc-sp2", "SDSC-SP2-1998-4.2-cln.swf.gz", "1999-03"),
            ("kth-sp2", "KTH-SP2-1996-2.1-cln.swf.gz", "1997-03"),
        ):
            given = ["--history", str(logs / log), "--config", str(root / f"configs/{name}.yaml")]
            found[f"tune-{name}"] = ["tune", *given, "--month", month, "-o", "OUT"]
    return found


def run(checkout: Path, name: str, words: list[str], folder: Path) -> None:
    """Run one command in a checkout; keep what it prints beside what it writes."""
    out = folder / name
    if (folder / f"{name}.txt").exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    given = [str(out) if word == "OUT" else word for word in words]
    lines = [["qconf", *given], ["qconf", *(RENAMED.get(word, word) for word in given)]]
    lines += [[MOVED[given[0]], *given[1:]]] if given[0] in MOVED else []
    for module, *rest in lines:
        line = [sys.executable, "-m", module, *rest]
        environment = {"PYTHONPATH": str(checkout), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
        done = subprocess.run(line, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        if "No such option" not in done.stderr and "is retired" not in done.stderr:
            break
    (folder / f"{name}.txt").write_text(f"exit {done.returncode}\n{done.stdout}", encoding="utf-8")


def content(path: Path) -> object:
    """Return what of a file is compared."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
    if path.suffix == ".json":
        return Counter(_leaves(json.loads(text)))
    if path.suffix == ".html":  # without the figures, whose words are drawn
        return Counter(NUMBER.findall(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)))
    if path.suffix in {"", ".csv", ".md", ".txt"}:
        return NUMBER.findall(text)
    lines = (re.sub(r"\s*(#|--).*", "", line) for line in text.splitlines())
    return [line for line in lines if line.strip()]


def _leaves(value: object, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [
            leaf for name, item in value.items() if name not in {"versions", "files"} for leaf in _leaves(item, name)
        ]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item, key)]
    return [repr(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def differences(old: Path, new: Path) -> list[str]:
    """Name what one folder has otherwise than the other."""
    before, after = ({p.relative_to(each).as_posix(): p for p in each.rglob("*") if p.is_file()} for each in (old, new))
    found = [f"only in one: {name}" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        if SKIPPED.fullmatch(Path(name).name):
            continue
        mine, theirs = content(before[name]), content(after[name])
        if mine == theirs:
            continue
        if isinstance(mine, Counter) and isinstance(theirs, Counter):
            found.append(
                f"{name}: only before {dict(list((mine - theirs).items())[:6])}, "
                f"only after {dict(list((theirs - mine).items())[:6])}"
            )
        else:
            pairs = [(a, b) for a, b in zip(mine, theirs, strict=False) if a != b]  # type: ignore[call-overload]
            found.append(f"{name}: {len(mine)} and {len(theirs)} items, first difference {pairs[:1]}")  # type: ignore[arg-type]
    return found


def main() -> int:
    """Run in both, compare, print every difference; 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--logs", type=Path, help="folder of public logs")
    parser.add_argument(
        "--out", type=Path, required=True, help="where both write; what is there already is not run again"
    )
    parser.add_argument("--only", nargs="*", help="names of commands; all unless given")
    given = parser.parse_args()
    root = given.old.resolve()
    for label, checkout in (("old", given.old.resolve()), ("new", given.new.resolve())):
        for name, words in commands(root, given.logs).items():
            if given.only and name not in given.only:
                continue
            print(f"{label}: {name}", flush=True)
            run(checkout, name, words, given.out.resolve() / label)
    found = differences(given.out / "old", given.out / "new")
    print("\n".join(found) or "no difference")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
