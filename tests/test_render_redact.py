from __future__ import annotations

import pandas as pd
import pytest

from hlotrace.render.redact import Redactor, redacted
from hlotrace.views.blocks import Bars, Grid, Note, ShownColumn

NOBODY: dict[str, list[str]] = {"users": [], "hosts": []}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/planted/model/layer.py:12", "~/model/layer.py:12"),
        ("/Users/planted/model/layer.py", "~/model/layer.py"),
        ("/root/model.py", "~/model.py"),
        ("/usr/local/google/home/planted/x.py", "~/x.py"),
        ("/mnt/c/Users/planted/x.py", "~/x.py"),
        (r"C:\Users\planted\model\layer.py:3", r"~\model\layer.py:3"),
        ("file:///home/planted/x", "file://~/x"),
        ("/home/planted", "~"),
        ("in '/home/planted', line 3", "in '~', line 3"),
        ("planted@box and planted-desktop and PLANTED", "user@box and user-desktop and user"),
        ("transplanted implanted", "transplanted implanted"),
        ("/code/src/home/page.py", "/code/src/home/page.py"),
        ("jit(step)/home/dot_general", "jit(step)/home/dot_general"),
        ("jit(step)/root/dot_general", "jit(step)/root/dot_general"),
        ("/rootfs/x is_root root", "/rootfs/x is_root root"),
        ("/opt/model/layer.py", "/opt/model/layer.py"),
        ("/usr/lib/site-packages/django/users/models.py", "/usr/lib/site-packages/django/users/models.py"),
        ("/data/weights/layer.py", "/data/weights/layer.py"),
    ],
)
def test_homes_and_the_names_in_them_are_left_out(text, shown):
    redactor = Redactor([text, "/home/planted/other.py"], **NOBODY)
    assert redactor(text) == shown


@pytest.mark.parametrize(
    "home",
    [
        *(
            "/gpfs/home/planted",
            "/users/planted",
            "/nfs/users/planted",
            "/mnt/nfs/home/planted",
            "/lustre/users/planted",
        ),
        *("/workspace/home/planted", "/storage/home/x/0/planted", "/home/p/planted", "/u/planted", "/scratch/planted"),
        *("/data/users/planted", "/export/home/planted", "/Users/Planted Person", r"C:\Users\Planted Person"),
    ],
)
def test_homes_of_sites_of_every_kind_are_left_out(home):
    mark = "\\" if "\\" in home else "/"
    path = f"{home}{mark}model{mark}layer.py:12"
    redactor = Redactor([path], **NOBODY)
    assert redactor(path) == f"~{mark}model{mark}layer.py:12"
    assert redactor("by planted, in jit(f)/users/x") == "by user, in jit(f)/users/x"


def test_this_machine_and_this_user_are_unnamed(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "plantedperson")
    monkeypatch.setattr("socket.gethostname", lambda: "plantedbox.example.net")
    redactor = Redactor()
    assert redactor("plantedperson on plantedbox, plantedbox.example.net:8080") == "user on host, host:8080"


def test_names_that_are_words_of_the_subject_stay(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    monkeypatch.setattr("socket.gethostname", lambda: "tpu")
    assert Redactor()("root tpu") == "root tpu"


def test_a_name_met_in_one_block_is_left_out_of_all():
    frame = pd.DataFrame(
        {"a": ["planted/x", None], "lists": [["/home/planted/y"], []], "hidden": ["secret", "secret"], "n": [1, 2]}
    )
    columns = (ShownColumn("a", "a"), ShownColumn("lists", "l"), ShownColumn("n", "n", "count"))
    blocks = [
        Note("by planted", command="hlotrace show /home/planted/bundle ops"),
        Grid("planted's", frame, columns, 2),
        Bars("b", ("planted",), {"planted": (1.0,)}, "count"),
    ]
    note, grid, bars = redacted(blocks, **NOBODY)
    assert (note.text, note.command) == ("by user", "hlotrace show ~/bundle ops")
    assert grid.title == "user's"
    assert grid.frame["a"].tolist()[0] == "user/x"
    assert grid.frame["lists"].tolist() == [["~/y"], []]
    assert grid.frame["n"].tolist() == [1, 2]
    assert "hidden" not in grid.frame
    assert (bars.labels, bars.series) == (("user",), {"user": (1.0,)})
    assert frame["a"].tolist()[0] == "planted/x"
