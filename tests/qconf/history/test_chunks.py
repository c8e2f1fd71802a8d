"""Chunks of nodes: PBS's select, sacct's TRES, columns of a CSV, and what becomes of them at a site."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parsim.model.node_types import Chunk
from qconf.config import ConfigError, SiteConfig, dump, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.history import chunks, clean, read
from qconf.history.history import history_lines

SITE = """machine: {name: mixed, cores: 192}
nodes:
  - {name: cpu, count: 4, cores: 32, memory: 192gb}
  - {name: gpu, count: 2, cores: 32, memory: 512gb, gpus: 4, features: [a100], resources: {boards: 1}}
queues:
  - {name: work, cores: [1, 192], walltime: [0, 48h]}
"""
HEADER = "job_id,submit,runtime,walltime,cores,queue"


def site(text: str = SITE) -> SiteConfig:
    return parse(text)


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("2:ncpus=16:ngpus=2:mem=64gb", (Chunk(2, 16, {"gpus": 2, "memory": 65536}),)),
        ("2:ncpus=16+1:ncpus=4", (Chunk(2, 16), Chunk(1, 4))),
        ("ncpus=4:mpiprocs=4:ompthreads=1", (Chunk(1, 4),)),
        ("ncpus=4:cores_without_gpus=4", (Chunk(1, 4),)),
        ("3", (Chunk(3, 1),)),
        ("1:ncpus=1:mem=1500kb", (Chunk(1, 1, {"memory": 2}),)),
        ("1:mem=1048577", (Chunk(1, 1, {"memory": 2}),)),  # bytes
        ("1:ncpus=1:mem=1mw", (Chunk(1, 1, {"memory": 8}),)),  # words of eight bytes
        ("1:ncpus=8:bigmem=True:old=False:model=a100", (Chunk(1, 8, {}, frozenset({"bigmem", "model=a100"})),)),
        ("2:ncpus=8:boards=1:host=n1", (Chunk(2, 8, {"boards": 1}),)),
    ],
)
def test_select(select: str, found: tuple[Chunk, ...]):
    assert chunks.of_select(select) == found
    assert chunks.read(f"after:1 {chunks.words(found)}") == found


@pytest.mark.parametrize("select", ["2:ncpus", "1:mem=lots", "1:=3", "0:ncpus=1"])
def test_a_select_that_cannot_be_read(select: str):
    with pytest.raises(ValueError, match=r"."):
        chunks.of_select(select)


@pytest.mark.parametrize(
    ("tres", "constraints", "found"),
    [
        ("billing=8,cpu=32,gres/gpu=4,mem=128G,node=2", "", (Chunk(2, 16, {"gpus": 2, "memory": 65536}),)),
        ("cpu=5,mem=3000M,node=2", "", (Chunk(1, 3, {"memory": 1500}), Chunk(1, 2, {"memory": 1500}))),
        ("cpu=4,gres/gpu:a100=2,node=1", "", (Chunk(1, 4, {"gpus": 2, "gpu:a100": 2}),)),
        ("cpu=4,gres/gpu:a100=1,gres/gpu=3,node=1", "", (Chunk(1, 4, {"gpus": 3, "gpu:a100": 1}),)),
        (
            "cpu=2,gres/gpu:a100=1,node=2",
            "",
            (Chunk(1, 1, {"gpus": 1, "gpu:a100": 1}), Chunk(1, 1, {"gpus": 0, "gpu:a100": 0})),
        ),
        ("billing=9,cpu=4,gres/compute-node=1,license/x=2,node=1", "", (Chunk(1, 4, {"compute-node": 1}),)),
        ("cpu=4,node=1", "haswell&ib", (Chunk(1, 4, {}, frozenset({"haswell", "ib"})),)),
        ("cpu=4,node=1", "haswell|broadwell", (Chunk(1, 4, {}, frozenset({"broadwell|haswell"})),)),
        ("cpu=4,node=1", "(a100|h100)&nvme", (Chunk(1, 4, {}, frozenset({"a100|h100", "nvme"})),)),
        ("cpu=4,node=1", "a&b|c", (Chunk(1, 4, {}, frozenset({"a|c", "b|c"})),)),
        ("cpu=4,node=1", "a|a&b", (Chunk(1, 4, {}, frozenset({"a", "b"})),)),
        ("cpu=4,node=4", "[a*2&b*1]", (Chunk(2, 1, {}, frozenset("a")), Chunk(1, 1, {}, frozenset("b")), Chunk(1, 1))),
        ("cpu=4,gres/fpga=2,gres/gpumem=8,energy=5,node=1", "", (Chunk(1, 4, {"fpga": 2}),)),
        ("cpu=4,mem=1.50G,node=1", "", (Chunk(1, 4, {"memory": 1536}),)),
        ("cpu=4,node=1", "", ()),
        ("", "", ()),
    ],
)
def test_tres(tres: str, constraints: str, found: tuple[Chunk, ...]):
    assert chunks.of_tres(tres, constraints) == found


@pytest.mark.parametrize("features", ["a&", "(a", "a)", "a*", "[a*2&b*1]|c", "a=1", "a*0", "[a*3]", "a b"])
def test_features_that_cannot_be_read(features: str):
    with pytest.raises(ValueError, match="feature"):
        chunks.of_tres("cpu=4,node=2", features)


@pytest.mark.parametrize("place", ["pack:scatter", "scatter:free", "excl:shared", "vscatter:pack:excl"])
def test_places_that_pbs_refuses_cannot_be_read(place: str):
    with pytest.raises(ValueError, match=f"place={place} has .* and .*, of which a job has one"):
        chunks.of_select("2:ncpus=4", place)


def test_sums_are_spread_over_small_chunks():
    assert chunks.spread(32, 4, 4096, ["a100"]) == (Chunk(4, 8, {"gpus": 1, "memory": 1024}, frozenset({"a100"})),)
    assert chunks.spread(6, 0, 7, []) == (Chunk(6, 1, {"memory": 2}),)


def test_columns_of_a_csv(write):
    rows = ["a,0,9,9,32,work,2:ncpus=16:ngpus=1,,,", "b,1,9,9,8,work,,2,64gb,a100", "c,2,9,9,4,work,,,,", ""]
    records = read(write("\n".join((f"{HEADER},chunks,gpus,memory,node_type", *rows))))
    assert records.table["needs"].tolist() == [
        "chunk:2:cores=16,gpus=1",
        "chunk:2:cores=4,gpus=1,memory=32768,a100",
        "",
    ]
    again = read(write("".join(history_lines(records.table, 0)), "again.csv"))
    assert again.table["needs"].tolist() == records.table["needs"].tolist()


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("1:ncpus,,,", r"line 2: chunks = '1:ncpus': cannot be read"),
        (",x,,", "gpus = 'x'"),
        (",,12pounds,", "memory = "),
        ("1:ncpus=4,,,alone", "place = 'alone': cannot be read"),
    ],
)
def test_cells_that_cannot_be_read(cells: str, words: str, write):
    with pytest.raises(InputError, match=words):
        read(write(f"{HEADER},chunks,gpus,memory,place\na,0,9,9,4,work,{cells}\n"))


def test_how_chunks_of_a_csv_are_placed(write):
    rows = [
        "a,0,9,9,32,work,2:ncpus=16,,scatter:excl",
        "b,1,9,9,8,work,,2,free",
        "c,2,9,9,4,work,,,exclhost",
        "d,3,9,9,32,work,,,pack",
    ]
    records = read(write("\n".join((f"{HEADER},chunks,gpus,place", *rows, ""))))
    needs = [
        "chunk:2:cores=16 place:scatter,excl",
        "chunk:2:cores=4,gpus=1",
        "chunk:4:cores=1 place:excl",
        "chunk:1:cores=32",
    ]
    assert [" ".join(text.replace(",memory=0", "").split()) for text in records.table["needs"]] == needs
    assert chunks.read(needs[0]) == (Chunk(2, 16, exclusive=True, scattered=True),)
    again = read(write("\n".join((f"{HEADER},needs", f"a,0,9,9,32,work,{chr(34)}{needs[0]}{chr(34)}", ""))))
    assert again.table["needs"].tolist() == needs[:1]


def test_pbs(write):
    line = "11/25/2026 10:00:00;E;{}.s;user=u group=g queue=work ctime=100 start=110 end=150 Resource_List.ncpus=16 {}"
    texts = [
        line.format(1, "Resource_List.select=2:ncpus=8:ngpus=1 Resource_List.walltime=01:00:00"),
        line.format(2, "Resource_List.select=2:ncpus=8 Resource_List.walltime=01:00:00"),
        line.format(3, "Resource_List.select=2:ncpus=8:what Resource_List.walltime=01:00:00"),
        line.format(4, "Resource_List.place=pack:exclhost Resource_List.select=2:ncpus=8:mem=1gb"),
        line.format(5, "Resource_List.place=vscatter:group=rack Resource_List.select=16:ncpus=1"),
        "",
    ]
    records = read(write("\n".join(texts), "20261125"))
    assert records.table["needs"].tolist() == [
        "chunk:2:cores=8,gpus=1",
        "chunk:2:cores=8",
        "",
        "chunk:1:cores=16,memory=2048 place:excl",
        "chunk:16:cores=1 place:scatter",
    ]
    assert records.changed == {chunks.UNREADABLE: 1}


def history(*selects: str, config: SiteConfig | None = None, path: Path):
    rows = []
    for k, select in enumerate(selects):
        cores = sum(c.count * c.cores for c in chunks.of_select(select)) if select else 8
        rows.append(f"{k},{k},9,9,{cores},work,{select}")
    path.write_text("\n".join((f"{HEADER},chunks", *rows, "")))
    return clean(read(path), site() if config is None else config)


def test_the_workload_of_a_site(tmp_path: Path):
    found = history("2:ncpus=8:ngpus=1", "", "2:ncpus=8:ngpus=1:what=3", path=tmp_path / "log.csv")
    jobs = found.workload(site())
    assert jobs.request.tolist() == [0, -1, 0]  # what no node has is not counted
    assert jobs.requests == ((Chunk(2, 8, {"gpus": 1}),),)
    assert found.changed[chunks.CORES_ALONE] == 1


def test_jobs_that_no_nodes_hold_are_left_out_and_counted(tmp_path: Path):
    too_much = ("1:ncpus=8:ngpus=5", "1:ncpus=8:mem=1tb", "1:ncpus=33", "1:ncpus=8:x=True")
    found = history(*too_much, "", path=tmp_path / "l.csv")
    assert found.reasons == {"fits no nodes of its queue": 4}
    bound = site(SITE.replace("walltime: [0, 48h]", "walltime: [0, 48h], nodes: [cpu]"))
    found = history("1:ncpus=8:ngpus=1", "", config=bound, path=tmp_path / "l.csv")
    assert found.reasons == {"fits no nodes of its queue": 1}


def test_jobs_that_cannot_be_placed_are_left_out_and_counted(tmp_path: Path):
    bound = site(SITE.replace("walltime: [0, 48h]", "walltime: [0, 48h], nodes: [cpu]"))
    of_two_kinds = ("4:ncpus=20:mem=1gb+3:ncpus=16", "3:ncpus=16+4:ncpus=20:mem=1gb", "4:ncpus=20:mem=1gb+3:ncpus=12")
    path = tmp_path / "log.csv"
    assert not history(*of_two_kinds, config=bound, path=path).reasons  # by totals there is room
    found = history(*of_two_kinds, config=bound.replace(reserve="nodes"), path=path)
    assert found.reasons == {"fits no nodes of its queue": 2}


def test_chunks_of_other_cores_than_the_job(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text(f"{HEADER},chunks\na,0,9,9,32,work,1:ncpus=8:ngpus=1\nb,1,9,9,33,work,2:ncpus=8:ngpus=1\n")
    found = clean(read(path), site())
    jobs = found.workload(site())
    assert jobs.requests == ((Chunk(1, 32, {"gpus": 1}),),)  # it had the node for itself
    assert jobs.request.tolist() == [0, -1]
    assert found.changed[chunks.OTHER_CORES] == 1


def test_without_types_of_nodes_gpus_are_counted_as_not_simulated(tmp_path: Path):
    plain = site("machine: {name: m, cores: 192}\nqueues:\n  - {name: work, cores: [1, 192], walltime: [0, 48h]}\n")
    found = history("1:ncpus=8:ngpus=5", "1:ncpus=8:mem=9tb", config=plain, path=tmp_path / "log.csv")
    assert found.changed[chunks.WITH_GPUS] == 1
    assert np.array_equal(found.workload(plain).request, [-1, -1])


def test_a_configuration_is_written_and_read_back():
    bound = site(SITE.replace("walltime: [0, 48h]", "walltime: [0, 48h], nodes: [gpu, cpu]"))
    assert parse(dump(bound)) == bound
    (cpu, gpu) = bound.system().node_types
    assert dict(gpu.resources) == {"boards": 1, "gpus": 4, "memory": 512 * 1024}
    assert gpu.features == {"gpu", "a100"}
    assert dict(cpu.resources) == {"memory": 192 * 1024}


def down(of: str) -> str:
    return f"downtime: [{{begin: 2026-03-01, end: 2026-03-02, {of}}}]\nqueues:"


def test_downtimes_of_types_are_written_and_read_back():
    config = site(SITE.replace("queues:", down("types: {gpu: 1}")))
    assert parse(dump(config)) == config
    assert "types: {gpu: 1}}" in dump(config)
    with pytest.raises(ConfigError, match="the site has no types of nodes"):
        site("machine: {name: m, cores: 192}\n" + down("types: {gpu: 1}") + "\n  - {name: work, cores: [1, 192]}\n")


@pytest.mark.parametrize("system", ["pbs", "slurm"])
def test_queues_that_are_bound_to_nodes_are_not_exported(system: str):
    bound = site(SITE.replace("walltime: [0, 48h]", "walltime: [0, 48h], nodes: [cpu]"))
    with pytest.raises(ExportError, match="nodes cpu: queues are bound to nodes, and these have no names"):
        exporter(system)().export(bound)
    plan = exporter(system)().export(site()).files["PLAN.md"]
    assert "what they have stays as it is" in " ".join(plan.split())


def test_types_of_gpus_are_those_of_the_nodes() -> None:
    """As features, counted, or neither where nodes name no type; in whatever letters the log has them."""
    text, cores = np.array(["chunk:1:cores=4,gpus=2,gpu:a100=2"], dtype=object), np.array([4])

    def wanted(words: str) -> Chunk:
        ((chunk,),) = chunks.requests(text, cores, site(SITE.replace("features: [a100]", words)))[1]
        return chunk

    assert wanted('features: ["gpu:A100"]') == Chunk(1, 4, {"gpus": 2}, frozenset({"gpu:A100"}))
    assert wanted('features: ["gpu:h100"]') == Chunk(1, 4, {"gpus": 2}, frozenset({"gpu:a100"}))
    assert wanted("features: [a100]") == Chunk(1, 4, {"gpus": 2})
    counted = SITE.replace("features: [a100], resources: {boards: 1}", 'resources: {"gpu:A100": 2, "gpu:1g.5gb": 2}')
    assert chunks.requests(text, cores, site(counted))[1] == [(Chunk(1, 4, {"gpus": 2, "gpu:A100": 2}),)]


def test_jobs_that_had_gpus_of_a_type_which_no_node_names_are_counted(write) -> None:
    row = 'a,0,9,9,4,work,"chunk:1:cores=4,gpus=2,gpu:a100=2"'
    history = clean(read(write(f"{HEADER},needs\n{row}\n")), site())
    assert history.changed == {chunks.ANY_TYPE: 1}
