import base64
import csv
import hashlib
import json
import math
import re
from html.parser import HTMLParser

import pytest

from lmms_eval_tasks.cli import main
from lmms_eval_tasks.mt_video_bench import metrics

from .conftest import write_log
from .stand_ins import comparisons, dialogues


class Page(HTMLParser):
    """Elements of a page, with their attributes, and the texts of some."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {"script": "", "style": "", "th": ""}, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open = tag

    def handle_data(self, data):
        if self._open in self.texts:
            self.texts[self._open] += data

    def handle_endtag(self, tag):
        self._open = ""

    def all(self, *names):
        return [attributes for tag, attributes in self.elements if tag in names]


@pytest.fixture(scope="module")
def page(sample_report):
    return Page((sample_report[0] / "report.html").read_text("utf-8"))


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_folder_holds_all_of_it(sample_report):
    folder, result = sample_report
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "report.json", "scores.csv", "differences.csv", "plots", "samples",
    }  # fmt: skip
    assert json.loads((folder / "report.json").read_text("utf-8")) == result
    for plot in result["plots"]:
        assert all((folder / file).is_file() for file in plot["files"])


def test_numbers_are_those_of_score(sample_report):
    folder, result = sample_report
    [table] = result["tables"]
    first, other = table["rows"]
    assert (first["run"], other["run"]) == ("first", "org/<b>model")
    assert (
        first["scores"]["overall"] == {"value": 100.0, "low": 100.0, "high": 100.0} and first["counts"]["scored"] == 24
    )
    assert other["counts"] == {"scored": 23, "unjudged": 0, "no_answer": 1, "excluded": 0, "unread": 0, "truncated": 0}
    assert other["coverage"] == pytest.approx(100 * 23 / 24)
    lines = {(row["run"], row["score"]): row for row in rows(folder / "scores.csv")}
    assert float(lines["org/<b>model", "overall"]["value"]) == other["scores"]["overall"]["value"]
    assert lines["Gemini-2.5-Pro", "overall"]["source"] == "published"


def test_few_videos_give_intervals_and_no_differences(sample_report):
    """The sample release has four."""
    _, result = sample_report
    [table] = result["tables"]
    overall = [row["scores"]["overall"] for row in table["rows"]]
    assert all(score["low"] <= score["value"] <= score["high"] for score in overall)
    assert [pair["scores"] for pair in table["differences"]] == [{}]
    assert set(table["clearly_best"].values()) == {None}


def test_the_page_needs_no_network_and_forbids_it(sample_report, page):
    text = (sample_report[0] / "report.html").read_text("utf-8")
    assert not page.all("link", "iframe", "object", "embed", "base", "video", "audio", "source")
    assert all(of["src"].startswith("data:image/svg+xml;base64,") for of in page.all("img"))
    assert all(of["href"].startswith("#") for of in page.all("a"))
    assert [set(of) for of in page.all("script")] == [set()]
    assert not re.search(r"url\(|@import|https?://", page.texts["style"] + page.texts["script"])
    [policy] = [of["content"] for of in page.all("meta") if of.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "connect-src" not in policy
    assert "http" not in policy.replace("http-equiv", "") and "*" not in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.texts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert text.index("Content-Security-Policy") < text.index("<script")


def test_names_are_text(page):
    assert not page.all("b") and "org/<b>model" in page.texts["th"]


def test_every_control_has_a_label_and_every_table_its_heads(page):
    names = [tag for tag, _ in page.elements]
    assert names.count("label") == len(page.all("select", "input"))
    assert {"header", "nav", "main", "footer", "h1", "h2"} <= set(names) and names.count("main") == 1
    assert all(of.get("scope") for of in page.all("th"))
    assert all(of["alt"] for of in page.all("img"))
    ids = [of["id"] for _, of in page.elements if "id" in of]
    assert len(ids) == len(set(ids))
    assert {of["href"][1:] for of in page.all("a")} <= set(ids)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    write_log(folder / "good", "good", dialogues(1, 40, skill=0.7))
    write_log(folder / "bad", "bad", dialogues(2, 40, skill=0.4))
    write_log(folder / "good", "good", comparisons(1))
    return folder


def test_the_command(logs, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert main(["report", str(logs / "good"), f"worse={logs / 'bad'}", "-o", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "report.json").read_text("utf-8"))
    table = next(of for of in printed["tables"] if of["benchmark"] == "mt_video_bench")
    overall = table["rows"][0]["scores"]["overall"]
    assert overall["value"] == metrics.scores(dialogues(1, 40, skill=0.7))["overall"]
    assert overall["low"] < overall["value"] < overall["high"]
    [pair] = table["differences"]
    assert (pair["one"], pair["other"], pair["conditions_that_differ"]) == ("good", "worse", [])
    assert pair["scores"]["overall"]["clear"] and 0 < pair["scores"]["overall"]["p"] < 0.05
    assert table["clearly_best"]["overall"] == 0
    [line] = [row for row in rows(out / "differences.csv") if row["score"] == "overall"]
    assert float(line["low"]) == pair["scores"]["overall"]["low"] and line["clear"] == "True"
    text = (out / "report.html").read_text("utf-8")
    assert f"<strong>{overall['value']:.2f}</strong>" in text
    assert math.isclose(table["published"]["rows"]["Gemini-2.5-Pro"]["overall"], 76.95)


def test_it_is_the_same_again_and_takes_the_place_of_the_last(logs, tmp_path, capsys):
    out = tmp_path / "out"
    files = []
    for _ in range(2):
        assert main(["report", str(logs / "bad"), "-o", str(out)]) == 0
        files.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
        (out / "samples" / "answers-99.js").write_text("left over")
    assert files[0] == files[1]
    assert capsys.readouterr().out.split() == [str(out / "report.html")] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_files_are_left_alone(logs, tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["report", str(logs / "bad"), "-o", str(tmp_path)]) == 1
    assert "holds other files than a report" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert main(["report", str(logs / "bad"), "-o", str(tmp_path / "thesis.tex")]) == 1
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["notes.md", "plots"])
def test_a_folder_that_only_looks_like_a_report_is_left_alone(logs, tmp_path, capsys, other):
    out = tmp_path / "out"
    if other == "notes.md":
        assert main(["report", str(logs / "bad"), "-o", str(out)]) == 0
    (out / other).mkdir(parents=True)
    before = sorted(out.iterdir())
    assert main(["report", str(logs / "bad"), "-o", str(out)]) == 1
    assert f"holds other files than a report. Name a new folder:\n  - {other}\n" in capsys.readouterr().err
    assert sorted(out.iterdir()) == before


def test_a_disk_that_refuses_is_one_message(logs, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["report", str(logs / "bad"), "-o", str(tmp_path / "file" / "out")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_one_message_and_nothing_is_written(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere"), "-o", str(tmp_path / "out")]) == 1
    assert "nowhere does not exist" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
