"""The contract: targets, their options, and an exporter of a batch system that is a folder and no more."""

import subprocess
import sys
from dataclasses import dataclass, fields

import pytest

from qconf.config import load, parse
from qconf.errors import InputError
from qconf.export import Derived, Export, Exporter, ExportError, exporter, targets
from tests.qconf.export.sites import CRAY, FRESH, HYBRID, ROOT


def test_the_folders_are_the_targets():
    assert targets() == ("pbs", "slurm")
    for target in targets():
        assert exporter(target).target == target
        assert issubclass(exporter(target), Exporter)


def test_an_unknown_target_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"--target = 'lsf': no such batch system. Choose among pbs, slurm"):
        exporter("lsf")


def test_listing_targets_and_options_imports_nothing_heavy():
    script = (
        "import sys; from qconf.export import exporter, targets; [exporter(target) for target in targets()]\n"
        "assert not {'numpy', 'numba', 'pandas', 'pydantic', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize("target", targets())
def test_every_option_has_help(target):
    assert "nodes" in {each.name for each in fields(exporter(target))}
    assert all(each.metadata["help"].endswith(".") for each in fields(exporter(target)))


def test_options_that_name_files_are_read(tmp_path):
    (tmp_path / "printed").write_text(FRESH)
    found = exporter("pbs").of(current=tmp_path / "printed", nodes="n[1-2]", remove=("a",))
    assert list(found.current.queues) == ["workq"]
    assert [node.name for node in found.nodes] == ["n1", "n2"]
    assert found.remove == ("a",)
    with pytest.raises(InputError, match="cannot be read"):
        exporter("pbs").of(current=tmp_path / "missing")


@pytest.mark.parametrize("target", targets())
def test_check_gives_the_reason_for_which_export_is_refused(target):
    good, bad = load(CRAY), parse(HYBRID.replace("name: small", "name: a;b"))
    assert exporter(target)().check(good) == []
    with pytest.raises(ExportError) as refused:
        exporter(target)().export(bad)
    assert exporter(target)().check(bad) == [str(refused.value)]


@pytest.mark.parametrize("target", targets())
def test_notes_are_in_the_export_and_in_its_plan(target):
    config = parse(HYBRID.replace("entry: move", "entry: either, placement: combined"))
    found = exporter(target).of(nodes="nid[001-012]")
    export = found.export(config)
    assert found.notes(config)
    assert set(found.notes(config)) <= set(export.notes)
    assert all(f"* {note}" in export.files["PLAN.md"] for note in export.notes)
    assert set(export.loaded) <= set(export.files)
    assert export.rollback in ("", *export.files)


def test_pbs_needs_the_scripts_that_its_export_has():
    pbs = exporter("pbs").of(nodes="nid[001-012]")
    hybrid, cray = parse(HYBRID), load(CRAY)
    late = cray.replace(reserve_after=3600)
    promote = "a systemd timer or cron job of root every minute: qconf-promote"
    assert pbs.needs(hybrid) == [promote]
    assert pbs.needs(hybrid, cray) == [promote]
    assert pbs.needs(hybrid, hybrid) == [f"{promote}, in the place of the present one"]
    assert (
        pbs.needs(late)
        == pbs.needs(late, hybrid)
        == ["a systemd timer or cron job of root every minute: qconf-reserve"]
    )
    assert pbs.needs(cray) == pbs.needs(cray, hybrid) == []


def test_slurm_needs_a_script_for_the_pool_alone():
    slurm = exporter("slurm")()
    assert slurm.needs(parse(HYBRID)) == ["a cron job every minute, of user slurm: qconf-promote"]
    assert slurm.needs(load(CRAY).replace(reserve_after=3600)) == []


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize(
    "config",
    [
        parse(HYBRID),
        parse(HYBRID.replace("cores: 24,", "cores: 0,").replace("partition: 32", "partition: 56")),
        parse(HYBRID.replace("mode: hybrid", "mode: hybrid\nreserve_after: 1h")),
        load(CRAY),
        load(CRAY).replace(reserve_after=3600),
        load(CRAY).replace(reserve_after=3600, backfill=False),
    ],
)
def test_what_is_needed_is_in_the_export_and_no_other_program(target, config):
    found = exporter(target).of(nodes="nid[001-012]" if config.mode != "shared" else "nid[0001-1468]")
    files = found.export(config).files
    tools = {"sh step": "step", "python3 -I qconf-pbs": "qconf-pbs"}  # which the plan runs itself
    run = {name for command, name in tools.items() if f"\n{command} " in files["PLAN.md"]}
    programs = {name for name, text in files.items() if text.startswith("#!")} - run
    assert {each.rpartition(" ")[2] for each in found.needs(config)} == programs


def test_a_subclass_needs_no_more_than_the_three_methods():
    @dataclass(frozen=True)
    class Toy(Exporter):
        target, name, source = "toy", "Toy", "a toy"

        def export(self, config):
            return Export({"PLAN.md": config.machine.name})

        def notes(self, config):
            return ()

        def read(self, path, *, cores=None, name=None):
            return Derived(load(path))

    assert Toy().check(load(CRAY)) == []
    assert Toy().needs(load(CRAY)) == []
    assert Toy().read(CRAY).config == load(CRAY)


HOSTILE = (
    "$(touch_owned)",
    "`id`",
    "a;b",
    "a|b",
    "]]--[[",
    "x%s",
    "<script>",
    "=cmd()",
    "a'b",
    'a"b',
    "a\\b",
    "#a",
    "-a",
    "{{7}}",
)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("name", HOSTILE)
def test_no_export_has_a_queue_of_a_hostile_name(target, name):
    site = load(CRAY)
    queues = (site.queues[0].model_copy(update={"name": name}), *site.queues[1:])
    with pytest.raises(ExportError, match="queue name "):
        exporter(target)().export(site.with_queues(queues))


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("name", [*HOSTILE, "a b $(x) `x` ]]", "--]] os.execute('x')"])
def test_a_hostile_machine_is_no_more_than_a_comment(target, name):
    plain, site = load(CRAY), load(CRAY)
    site = site.replace(machine=site.machine.model_copy(update={"name": name}))
    found, expected = exporter(target)().export(site), exporter(target)().export(plain)
    assert found.files.keys() == expected.files.keys()
    for file, text in found.files.items():
        lines = zip(text.splitlines(), expected.files[file].splitlines(), strict=True)
        for mine, other in lines:
            if mine != other:
                assert plain.machine.name in other
                assert not set("$`;|<>=()\"'\\{}[]") & (set(mine) - set(other)), mine


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("name", HOSTILE)
def test_no_export_has_a_node_of_a_hostile_name(target, name):
    with pytest.raises((ExportError, InputError)):
        exporter(target).of(nodes=f"{name},n1")


@pytest.mark.parametrize("name", [each for each in HOSTILE if each[0] not in "-#" and each != "a;b"])
def test_no_export_has_an_object_of_a_hostile_name_that_a_server_holds(tmp_path, name):
    for kind in ("queue", "resource"):
        (tmp_path / "printed").write_text(f"{FRESH}create {kind} {name}\n")
        with pytest.raises(InputError, match="printed, line 8: "):
            exporter("pbs").of(current=tmp_path / "printed")
