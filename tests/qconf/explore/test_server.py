"""The server: who is let in, what a change does, what is kept."""

import json
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.errors import InputError
from tests.qconf.explore.served import ROOT, SITE, Served, write_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("served")
    write_log(found)
    (found / "site.yaml").write_text(SITE)
    (found / "secret.txt").write_text("of no run")
    return found


@pytest.fixture(scope="module")
def server(folder):
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=folder) as found:
        yield found


@pytest.fixture
def fresh(server):
    assert server.post("change", named="") == (200, {})
    return server


def test_the_address_gives_a_cookie_and_is_left(server):
    status, headers, _ = server.ask("GET", f"/?token={server.token}", headers={})
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    status, headers, body = server.get("/")
    assert status == 200
    assert b"<!doctype html>" in body.lower()
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "http" not in policy.replace("https", "http"), "no other host"


PATHS = ("/", "/page/page.js", "/api/site", "/api/events", "/run/explore/states.json")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_given(server, path):
    for headers in ({}, {"Cookie": f"qconf-{server.port}=wrong"}, {"Cookie": f"qconf-{server.port}=\u00e9"}):
        status, _, body = server.ask("GET", path, headers=headers)
        assert (status, b"open the address" in body) == (403, True)
    assert server.ask("GET", f"{path}?token=wrong", headers={})[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_another_host_or_origin_is_refused_whatever_it_has(server, path):
    """As a page does whose name was made to lead here after it was loaded (DNS rebinding)."""
    wrong = [("Host", f"evil.example:{server.port}"), ("Host", "127.0.0.1"), ("Origin", "http://evil.example")]
    for name, value in (*wrong, ("Origin", "null")):
        assert server.get(path, **{name: value})[0] == 403
    assert server.post("step", by=1)[0] == 200
    body, cookie = json.dumps({"set": {"order": "sjf"}}), server.cookie
    kinds = ({"Content-Type": "text/plain"}, {}, {"Content-Type": "application/json", "Origin": "https://evil.example"})
    for headers in kinds:
        assert server.ask("POST", "/api/change", body, cookie | headers)[0] == 403
    assert server.get(path if path != "/api/events" else "/", Origin=f"http://127.0.0.1:{server.port}")[0] == 200


def test_no_file_outside_the_run_is_given(fresh):
    assert fresh.get("/run/explore/states.json")[0] == 200
    outside = ("../secret.txt", "%2e%2e/secret.txt", "explore/../../secret.txt", "/etc/passwd")
    for path in (*outside, "explore/.token", "explore/.port", ".", ""):
        assert fresh.get(f"/run/{path}")[0] in (403, 404), path
    link = fresh.folder / "run" / "link.txt"
    link.symlink_to(fresh.folder / "secret.txt")
    assert fresh.get("/run/link.txt")[0] == 404


def test_a_change_gives_numbers_then_ranges(fresh):
    assert fresh.post("change", set={"queues.medium.max_run": "6"}, client="a") == (200, {})
    found = fresh.result()
    state = found["state"]
    assert (state["client"], state["what"], state["undo"]) == ("a", "queues.medium.max_run", True)
    assert state["document"]["changes"] == [{"path": "queues.medium.max_run", "before": "2", "after": "6"}]
    assert "max_run: 6" in state["text"]
    overall = found["numbers"]["overall"]
    assert overall["after"]["mean_wait"] < overall["before"]["mean_wait"]
    assert found["ranges"]["gain"]["expected"] > 0
    assert fresh.post("step", by=-1)[0] == 200
    found = fresh.result()
    assert found["state"]["document"]["changes"] == []
    assert found["state"]["redo"]
    assert found["numbers"]["overall"]["after"] == overall["before"]


def test_what_is_listed_is_taken_back_by_its_path(fresh):
    text = f"{SITE}throttles: [{{each: user, max_run: 3}}]\nshares: [{{name: ann, shares: 2}}]\n"
    assert fresh.post("change", text=text.replace("max_run: 2", "max_run: 6"))[0] == 200
    for count, path in enumerate(("throttles", "queues.medium.max_run", "shares")):
        changes = fresh.result()["state"]["document"]["changes"]
        assert (len(changes), path in {each["path"] for each in changes}) == (3 - count, True)
        assert fresh.post("change", back=path) == (200, {})
    assert fresh.result()["state"]["document"]["changes"] == []
    assert fresh.post("change", back="nothing")[0] == 422


def test_digits_that_follow_each_other_are_one_step_to_undo(fresh):
    for limit in ("1", "12", "120"):
        assert fresh.post("change", set={"queues.medium.max_run": limit}, client="a")[0] == 200
    assert fresh.post("change", set={"queues.short.max_run": "9"}, client="a")[0] == 200
    for left in (1, 0):
        assert fresh.post("step", by=-1)[0] == 200
        assert len(fresh.result()["state"]["document"]["changes"]) == left


def test_a_mistake_stands_at_its_field_and_changes_nothing(fresh):
    before = fresh.result()["state"]
    status, found = fresh.post("change", set={"queues.wide.cores": "[9, 3]", "queues.medium.max_run": "x"})
    assert status == 422
    assert {each["path"] for each in found["problems"]} == {"queues.wide.cores", "queues.medium.max_run"}
    status, found = fresh.post("change", text=SITE.replace("order: fcfs", "oder: fcfs"))
    assert (status, found["problems"][0]["line"]) == (422, 2)
    assert "order" in found["problems"][0]["message"]
    wrong = [("load", 900), ("load", "x"), ("stretch", "yesterday"), ("named", "nothing"), ("state", {})]
    for name, value in (*wrong, ("terms", [["x", "y"]]), ("set", 3), ("queues", 3)):
        assert fresh.post("change", **{name: value})[0] == 422, (name, value)
    for body in ("", "[]", "{", '{"a": ' * 9999, "x" * (2 << 20)):
        headers = fresh.cookie | {"Content-Type": "application/json"}
        assert fresh.ask("POST", "/api/change", body, headers)[0] == 422
    assert fresh.result()["state"]["serial"] == before["serial"]


def test_the_yaml_and_the_fields_are_one(fresh):
    text = SITE.replace("max_run: 2", "max_run: 9").replace("order: fcfs", "# ours\norder: sjf")
    fresh.post("change", text=text)
    found = fresh.result()["state"]
    assert found["text"] == text
    assert {each["path"] for each in found["document"]["changes"]} == {"order", "queues.medium.max_run"}
    fresh.post("change", terms=[[2, "eligible_time"], [1, "ncpus"]])
    assert fresh.result()["state"]["document"]["order"]["value"] == "2 * eligible_time + ncpus"


def test_a_job_that_can_never_start_is_said_and_the_state_stays(fresh):
    fresh.post("change", set={"queues.wide.cores": "[17, 32]"})
    found = fresh.result()
    assert "fit no queue" in found["failed"]["why"]
    assert found["state"]["document"]["changes"][0]["path"] == "queues.wide.cores"
    assert "numbers" not in found


def test_fifty_changes_in_a_second_give_the_result_of_the_last(fresh):
    for limit in range(3, 53):
        assert fresh.post("change", set={"queues.medium.max_run": str(limit)})[0] == 200
    found = fresh.result()
    assert "max_run: 52" in found["state"]["text"]
    assert found["numbers"]["serial"] == found["state"]["serial"]


def test_states_with_names_are_compared(fresh):
    fresh.post("change", set={"queues.medium.max_run": "6"})
    fresh.post("name", name="six")
    fresh.post("change", set={"queues.medium.max_run": "9"})
    assert fresh.post("name", against="six")[0] == 200
    found = fresh.result()
    assert (found["state"]["against"], found["state"]["named"]) == ("six", ["six"])
    assert found["numbers"]["overall"]["before"] != found["numbers"]["overall"]["after"]
    fresh.post("name", name="six", forget=True)
    found = fresh.result()
    assert (found["state"]["against"], found["state"]["named"]) == ("", [])


def test_why_a_job_waited(fresh):
    fresh.post("change", set={"queues.medium.max_run": "6"})
    job = fresh.result()["numbers"]["moved"][-1]["job"]
    status, found = fresh.post("explain", job=job)
    assert (status, found["job"]) == (200, job)
    assert found["after"]["wait"] < found["before"]["wait"]
    assert fresh.post("explain", job="nothing")[0] == 422
    with ThreadPoolExecutor() as tabs:
        assert [*tabs.map(lambda _: fresh.post("explain", job=job), range(3))] == [(200, found)] * 3


def test_an_export_is_written_below_the_run(fresh):
    status, found = fresh.post("export", name="../../a b")
    assert (status, found["place"]) == (200, "explore/exports/a-b/pbs")
    assert (fresh.folder / "run" / "explore" / "exports" / "a-b" / "pbs" / "PLAN.md").read_text() == found["plan"]
    status, headers, body = fresh.get(f"/run/{found['place']}/PLAN.md")
    assert (status, body.decode()) == (200, found["plan"])
    assert "sandbox" in headers["content-security-policy"]
    fresh.post("change", set={"order": "lxf", "queues.medium.tier": "3", "queues.short.preempted": "suspend"})
    status, found = fresh.post("export", name="b")
    assert status in (200, 422)


def test_readonly_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    with Served("log.csv", "--config", "site.yaml", "-o", "other", "--readonly", folder=folder) as server:
        assert server.post("change", set={"order": "sjf"}) == (200, {})
        assert "order" in str(server.result()["state"]["document"]["changes"])
        for path in ("export", "tune"):
            status, found = server.post(path)
            assert (status, "--readonly" in found["problems"][0]["message"]) == (422, True)
    assert sorted(folder.rglob("*")) == before


def test_a_server_that_is_killed_goes_on_where_it_was(tmp_path):
    write_log(tmp_path, jobs=100)
    (tmp_path / "site.yaml").write_text(SITE)
    server = Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path)
    server.post("change", set={"order": "sjf"})
    before = server.token, server.port
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    server.begin()
    assert (server.token, server.port) == before, "a page that is still open goes on"
    assert server.result()["state"]["document"]["changes"][0]["path"] == "order"
    code, last = server.end()
    assert (code, "The states are kept in run/explore" in last) == (0, True)


def test_a_port_in_use_and_a_second_server(server, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"--port = {port}: is in use"):
            Served("log.csv", "--config", "site.yaml", "-o", "third", "--port", port, folder=folder)
    with pytest.raises(RuntimeError, match="is writing a run here"):
        Served("log.csv", "--config", "site.yaml", "-o", "run", folder=folder)


def test_what_is_no_run(folder, tmp_path, monkeypatch):
    def explore(given):
        done = CliRunner().invoke(qconf, ["explore", str(given), "--no-browser"], catch_exceptions=False)
        raise InputError(done.output)

    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match="a log and --config"):
        explore("log.csv")
    with pytest.raises(InputError, match=r"gone: there is no such file or run directory\. Check the path"):
        explore("gone")
    run = tmp_path / "run"
    shutil.copytree(ROOT / "reports" / "example", run)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({key: each for key, each in record.items() if key != "inputs"}))
    with pytest.raises(InputError, match="was written by qconf"):
        explore(run)
    record["inputs"][0] |= {"name": "gone.csv"}
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"gone\.csv: is not there any more"):
        explore(run)
    (run / "run.json").unlink()
    with pytest.raises(InputError, match="holds no run"):
        explore(run)


@pytest.mark.slow
def test_tune_from_here_keeps_what_is_fixed(fresh):
    fresh.post("change", set={"queues.medium.max_run": "6"})
    assert fresh.post("tune", fixed=["order", "queues.medium.max_run"])[0] == 200
    found = fresh.events(lambda found: found.get("tuning", {}).get("verdict"), 600)["tuning"]
    run = fresh.folder / "run" / found["place"]
    record = json.loads((run / "run.json").read_text())
    assert record["verdict"] == found["verdict"]
    assert record["base"]["fixed"] == ["order", "queues.medium.max_run"]
    assert fresh.get(f"/run/{found['place']}/report.html")[0] == 200
    for row in record["strategies"]:
        if row["name"] == "auto" and row["config"]:
            assert row["config"]["order"] == "fcfs"


def test_a_log_that_vanished_is_said_when_it_is_read_again(tmp_path):
    write_log(tmp_path, jobs=100)
    (tmp_path / "site.yaml").write_text(SITE)
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path) as server:
        (tmp_path / "log.csv").unlink()
        server.post("change", set={"order": "sjf"})
        assert "numbers" in server.result(), "it was read"
        server.post("tune")
        found = server.events(lambda found: "log.csv" in found.get("tuning", {}).get("what", ""), 60)["tuning"]
        assert "there is no such file" in found["what"] or "cannot be read" in found["what"]
        assert server.post("tune", stop=True)[0] == 200


@pytest.mark.slow
def test_a_million_jobs(tmp_path):
    write_log(tmp_path, jobs=1_000_000, days=312)
    site = SITE.replace("cores: 64}", "cores: 4096}").replace("max_run: 2", "max_run: 130")
    (tmp_path / "site.yaml").write_text(site)
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path) as server:
        server.events(lambda found: "numbers" in found, 300)
        for limit in (140, 150, 160):
            server.post("change", set={"queues.medium.max_run": str(limit)})
        found = server.events(lambda found: "numbers" in found, 300)
        assert "max_run: 160" in found["state"]["text"]
        assert found["numbers"]["jobs"] == 1_000_000
