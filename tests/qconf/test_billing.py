"""What jobs are charged for: TRESBillingWeights and fairshare_usage_res as weights, and back."""

import pytest

from qconf.config import parse
from qconf.config.billing import left_out, weights, written
from qconf.errors import ExportError
from qconf.export.pbs.fairshare import by_pbs, charges_of, usage
from qconf.export.slurm.settings import added
from tests.qconf.small import site


@pytest.mark.parametrize(
    ("text", "found", "again"),
    [
        (
            "CPU=1.0,Mem=0.25G,GRES/gpu=2.0",
            {"cores": 1, "memory": 0.25 / 1024, "gpus": 2},
            "CPU=1,Mem=0.25G,GRES/gpu=2",
        ),
        ("cpu=.5,mem=1,gres/nvme=2K", {"cores": 0.5, "memory": 1, "nvme": 2 / 1024}, None),
        ("Mem=1M,Node=3,GRES/gpu:a100=4,license/x=1", {"memory": 1}, "Mem=1024G"),
        ("GRES/fast-ssd=2,GRES/gpu:A100-SXM4-80GB=4", {"fast-ssd": 2}, "GRES/fast-ssd=2"),
    ],
)
def test_billing_weights_of_slurm(text, found, again):
    assert weights(text) == found
    assert again is None or written(found) == again
    assert weights(written(found)) == pytest.approx(found)


def test_what_is_not_simulated_is_named():
    assert left_out("CPU=1,Node=3,GRES/gpu:a100=4") == ["Node", "GRES/gpu:a100"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ncpus*walltime", {}),
        ("ngpus*walltime", {"gpus": 1}),
        ("(ncpus + 20*ngpus)*walltime", {"cores": 1, "gpus": 20}),
        ("ncpus*walltime+ngpus*walltime*5", {"cores": 1, "gpus": 5}),
        ("mem*0.001*walltime", {"memory": 1.024}),
        *(
            (each, None)
            for each in ("ngpus", "ncpus**2*walltime", "max(ncpus,ngpus)*walltime", "ncpus+", "-ncpus*walltime")
        ),
    ],
)
def test_what_pbs_charges_is_read_and_written_back(text, found):
    assert charges_of(text) == found
    if found:
        assert charges_of(usage(site({"name": "a"}, mode="shared", fairshare={"charges": found}))) == found


def test_a_largest_charge_is_a_flag_of_slurm_and_refused_for_pbs():
    one = site(
        {"name": "a"},
        mode="shared",
        order="fair_share",
        fairshare={"charges": {"cores": 1, "gpus": 9}, "charged": "max"},
    )
    assert "MAX_TRES" in added(one)["PriorityFlags"]
    with pytest.raises(ExportError, match="max has no form in PBS"):
        usage(one)
    with pytest.raises(ExportError, match="active_jobs"):
        by_pbs(one, "eligible_time - active_jobs")


def test_jobs_are_charged_by_the_weights_of_their_queue_else_of_the_tree():
    text = """machine: {cores: 8}
queues:
  - {name: cpu}
  - {name: gpu, billing: 'CPU=1,GRES/gpu=8'}
fairshare: {charges: {memory: 0.5}, charged: max}
qos: [{name: fast, usage_factor: 2}]
order: fairshare_factor
"""
    config = parse(text)
    system = config.system()
    assert [dict(queue.charges) for queue in system.queues] == [{}, {"cores": 1, "gpus": 8}]
    assert (dict(system.fairshare.charges), system.fairshare.charged) == ({"memory": 0.5}, "max")
    assert system.qos[0].usage_factor == 2
    assert config.charged_for == {"memory", "cores", "gpus"}
