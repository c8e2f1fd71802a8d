import json

import pytest

from qconf.errors import InputError
from qconf.explore.states import KEPT, State, States, secret
from tests.qconf.explore.served import SITE

FIRST = State(SITE)


def other(cores):
    return State(SITE.replace("cores: 64}", f"cores: {cores}}}"))


def test_undo_redo_and_a_change_that_ends_what_was_undone(tmp_path):
    states = States(FIRST, tmp_path / "states.json")
    states.go(other(65))
    states.go(other(66))
    states.step(-1)
    states.step(-1)
    states.step(-1)
    assert states.now == FIRST
    states.step(1)
    assert states.now == other(65)
    states.go(other(70))
    states.step(1)
    assert states.now == other(70)
    again = States(FIRST, tmp_path / "states.json")
    assert (again.now, again.line) == (states.now, [FIRST, other(65), other(70)])


def test_digits_of_one_number_are_one_step():
    states = States(FIRST, None)
    states.go(other(70), instead=True)
    states.go(other(701), instead=True)
    assert states.line == [FIRST, other(701)]


def test_what_is_kept_is_bounded(tmp_path):
    states = States(FIRST, None)
    for cores in range(65, 400):
        states.go(other(cores))
    assert len(states.line) == KEPT
    assert states.now == other(399)
    assert list(tmp_path.iterdir()) == []


def test_names(tmp_path):
    states = States(FIRST, tmp_path / "states.json")
    states.name(" more cores ", other(80))
    assert States(FIRST, tmp_path / "states.json").named == {"more cores": other(80)}
    states.name("more cores", None)
    assert States(FIRST, tmp_path / "states.json").named == {}
    for wrong in ("", " ", "x" * 65, "a\nb", "\u202e"):
        with pytest.raises(InputError, match="is no name"):
            states.name(wrong, FIRST)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": 0, "named": {}, "line": [], "place": 0}', '{"format": 1, "named": {"a": {}}}']
)
def test_what_cannot_be_read_is_kept_beside_it(tmp_path, text):
    (tmp_path / "states.json").write_text(text)
    states = States(FIRST, tmp_path / "states.json")
    assert states.now == FIRST
    assert "kept as states.json~" in states.notes[0]
    assert (tmp_path / "states.json~").read_text() == text


def test_another_configuration_in_force_leaves_names_alone(tmp_path):
    states = States(FIRST, tmp_path / "states.json")
    states.name("a", other(80))
    states.go(other(90))
    later = States(other(128), tmp_path / "states.json")
    assert (later.now, later.named) == (other(128), {"a": other(80)})
    assert "another one" in later.notes[0]


@pytest.mark.parametrize(
    "given", [{}, {"text": "", "load": "x", "stretch": ""}, {"text": SITE, "load": 500, "stretch": "all"}]
)
def test_a_state_that_is_none(given):
    with pytest.raises(InputError):
        State.read(given)


def test_the_secret_is_this_users_alone(tmp_path):
    path = tmp_path / "explore" / ".token"
    assert secret(path, "first") == "first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret(path, "second") == "first"
    path.chmod(0o644)
    assert secret(path, "third") == "third", "others could have read it"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("known")
    elsewhere.chmod(0o600)
    path.unlink()
    path.symlink_to(elsewhere)
    assert secret(path, "fourth") == "fourth"
    assert json.dumps(elsewhere.read_text()) == '"known"'
