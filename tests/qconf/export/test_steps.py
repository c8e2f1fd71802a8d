"""The script that runs the steps of a plan: in order, once, again where they failed."""

import subprocess

import pytest

from qconf.export.rendering import render


@pytest.fixture
def step(tmp_path):
    """Run a step with commands; return how it ended and what it printed."""
    (tmp_path / "step").write_text(render("", "step"))
    (tmp_path / "PLAN.md").write_text("a plan")

    def run(words, commands="true"):
        line = f"sh step {words} <<'END'\n{commands}\nEND\n"
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout.strip()

    run.folder = tmp_path
    return run


def test_steps_are_run_in_order_and_once(step):
    assert step("2") == (1, "step 2: refused: step 1 comes first")
    assert step("1", "echo one >> ran") == (0, "step 1: done")
    assert step("3") == (1, "step 3: refused: step 2 comes first")
    assert step("1", "echo one >> ran") == (0, "step 1: done already, nothing is run")
    assert step("2", "echo two >> ran; false; echo after >> ran")[0] == 1
    assert step("3") == (1, "step 3: refused: step 2 comes first")
    assert step("2", "echo again >> ran") == (0, "step 2: done")
    assert (step.folder / "ran").read_text().split() == ["one", "two", "again"]


def test_a_step_that_was_killed_is_not_done(step):
    step("1")
    assert step("2", "kill -KILL $PPID; sleep 1")[0] == 137
    assert step("3") == (1, "step 3: refused: step 2 comes first")
    assert step("2") == (0, "step 2: done")


def test_the_undo_begins_after_any_step_and_ends_the_change(step):
    assert step("undo 1") == (0, "step undo 1: no step is done, nothing is to be undone")
    step("1"), step("2", "false")
    assert step("undo 2") == (1, "step undo 2: refused: step undo 1 comes first")
    assert step("undo 1", "false")[0] == 1
    assert step("2") == (1, "step 2: refused: the undo has begun; run its steps first")
    assert step("undo 1") == (0, "step undo 1: done")
    assert step("undo 2 last", "[ -e gone ]")[0] == 1
    assert step("undo 2 last", "touch jobs.moved") == (0, "step undo 2: done")
    assert not (step.folder / "jobs.moved").exists()
    assert step("undo 2 last") == (0, "step undo 2: no step is done, nothing is to be undone")
    assert step("1") == (0, "step 1: done")


def test_a_step_of_another_plan_in_the_same_folder_is_refused(step):
    step("1")
    (step.folder / "PLAN.md").write_text("another plan")
    for words in ("1", "2", "undo 1"):
        code, printed = step(words)
        assert code == 1
        assert "the change of another PLAN.md is in force here" in printed


def test_two_at_once_are_one(step):
    step("1")
    assert step("2", "echo true | sh step 3 || :") == (
        0,
        "step 3: refused: another step is running in this folder\nstep 2: done",
    )
