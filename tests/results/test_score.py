import json
import math
import random
import shutil
from collections import defaultdict
from statistics import fmean

import pytest
from datasets import Dataset

from lmms_eval_tasks import canonical
from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.mt_video_bench import release, task
from lmms_eval_tasks.results.score import score, table
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault

pytestmark = pytest.mark.usefixtures("quick_retries")

NAME = "mt_video_bench"


def record(home):
    [path] = (home / "runs").glob("*.jsonl")
    return path


def same(result, run):
    metrics, coverage = run.metrics()
    return result["metrics"] == metrics and result["coverage"] == coverage


def strict(results):
    """The results as strict JSON."""
    return json.loads(json.dumps(results, allow_nan=False))


def edited(path, target, change):
    """A copy of a log whose k-th line is `change(line, k)`."""
    lines = path.read_text().splitlines()
    target.write_text("".join(change(json.loads(line), k) for k, line in enumerate(lines)))
    return target


def line(value):
    return json.dumps(value) + "\n"


# ---------------------------------------------------------------------------------------------- an independent scoring


def reference_scores(docs, answers, said, failed):
    """The protocol page, section "Judging and scores", in plain Python and without the pack.

    Args:
        docs: Evaluated rounds, in any order, with those that stand beside them.
        answers: Per round, the names of its answers.
        said: Name of an answer -> the judge's repeats, each a list of yes and no or None.
        failed: Ids of the rounds whose request failed.
    """
    rounds, number = defaultdict(list), {"scored": 0, "unjudged": 0, "no_answer": 0, "excluded": 0}
    for doc, names in zip(docs, answers, strict=True):
        for beside in doc["skipped"]:
            number[beside["status"]] += 1
        repeats = [] if doc["id"] in failed else [repeat for name in names for repeat in said[name]]
        if doc["id"] in failed:
            number["no_answer"] += 1
        elif None in repeats:
            number["unjudged"] += 1
        else:
            number["scored"] += 1
            expected = [check["expected"] for check in doc["checklist"]]
            shares = [
                len([1 for mine, right in zip(verdict, expected, strict=True) if mine == right]) / len(expected)
                for verdict in repeats
            ]
            rounds[doc["ability"], doc["dialogue"]].append(100 * fmean(shares))
    abilities = defaultdict(list)
    for (ability, _), scores in rounds.items():
        abilities[ability].append(fmean(scores))
    result = {ability: fmean(scores) for ability, scores in abilities.items()}
    groups = {
        "overall": list(result),
        "perceptivity": ["object_reference", "memory_recall", "content_summary"],
        "interactivity": ["answer_refusal", "topic_shifting", "proactive_interaction"],
    }
    for group, members in groups.items():
        values = [result[ability] for ability in members if ability in result]
        if values:
            result[group] = fmean(values)
    asked = number["scored"] + number["unjudged"] + number["no_answer"]
    return result, 100 * number["scored"] / asked, number


def random_rows(dice):
    rows = []
    for number in range(dice.randint(1, 14)):
        turns = [
            {
                "question": f"question {number}.{k}",
                "answer": f"reference {number}.{k}",
                "checklist": [
                    {"question": f"Is it {number}.{k}.{c}?", "expected": dice.choice(["yes", "no"])}
                    for c in range(dice.choice([0, 1, 3, 5, 5, 5, 7]))
                ],
                "excluded": "four of five answers" if dice.random() < 0.1 else None,
            }
            for k in range(dice.randint(1, 8))
        ]
        turns[0].update(checklist=[{"question": "Is it?", "expected": "yes"}], excluded=None)
        rows.append(
            {
                "id": f"dialogue {number}",
                "ability": dice.choice(release.ABILITIES),
                "video": f"video {dice.randint(0, 3)}",
                "event": "1",
                "turns": turns,
                "seconds": dice.choice([None, 30.0, 899.0, 2000.0]),
                "scenes": dice.choice([None, 3, 30]),
            }
        )
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_random_releases_score_as_the_protocol_page_says(
    mt_prepared, home, tmp_path, make_run, random_judge, set_judge, seed
):
    dice = random.Random(seed)
    set_judge(repeats=dice.randint(1, 3), concurrency=dice.choice([1, 4, 16]))
    judge = random_judge(seed, refusing=dice.choice([0, 0.05, 0.3]))
    docs = list(task.process_docs(Dataset.from_list(random_rows(dice), features=release.features())))
    repeats = dice.randint(1, 2)
    names = [[f"{doc['id']}#{repeat}" for repeat in range(repeats)] for doc in docs]
    failed = {doc["id"] for doc in docs if dice.random() < 0.1}
    said = [
        ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] x" if doc["id"] in failed else f"<<{name}>>" for name in of]
        for doc, of in zip(docs, names, strict=True)
    ]
    run = make_run(docs, said).process()
    metrics, coverage = run.metrics()
    expected, share, number = reference_scores(docs, names, judge.said, failed)
    # A metric whose rounds were all missed is no number in lmms-eval's results, and absent from ours.
    metrics = {metric: value for metric, value in metrics.items() if not math.isnan(value)}
    assert metrics == pytest.approx(expected, abs=1e-9)
    assert coverage == share

    # The sample log holds all of it; the judge is asked nothing.
    requests = {name: list(of) for name, of in judge.said.items()}
    log = run.log(tmp_path)
    if not number["unjudged"]:
        result = strict(score([log]))[NAME]
        assert judge.said == requests
        assert result["metrics"] == pytest.approx(expected, abs=1e-9)
        assert result["coverage"] == share
        assert result["counts"] == {**number, "unread": 0, "truncated": 0}

    # What was refused is judged by another attempt, on the run record, and with the verdicts there are.
    judge.refusing = 0
    result = strict(score([record(home)]))[NAME]
    complete = {name: [verdict for verdict in of if verdict is not None] for name, of in judge.said.items()}
    expected, share, number = reference_scores(docs, names, complete, failed)
    assert result["metrics"] == pytest.approx(expected, abs=1e-9)
    assert result["coverage"] == share and number["unjudged"] == 0
    assert result["counts"] == {**number, "unread": 0, "truncated": 0}


# -------------------------------------------------------------------------------------------------------- kinds of logs


@pytest.mark.parametrize(
    "kind", ["log", "record", "both", "both, record first", "folder", "log twice", "parent folder"]
)
def test_every_log_of_a_run_gives_the_numbers_of_the_run(make_run, judge_server, home, tmp_path, kind):
    run = make_run().process()
    metrics, coverage = run.metrics()
    log = run.log(tmp_path)
    kinds = {
        "log": [log],
        "record": [record(home)],
        "both": [log, record(home)],
        "both, record first": [record(home), log],
        "folder": [log.parent],
        "log twice": [log, log, shutil.copy(log, tmp_path / "again.jsonl")],
        "parent folder": [tmp_path, home / "runs"],
    }
    requests = len(judge_server.requests)
    pool_module._pool.cache_clear()
    if kind != "record":
        # A log alone tells the scores, whatever stands beside it.
        shutil.rmtree(home / "judgements")
    result = strict(score(kinds[kind]))
    assert list(result) == [NAME]
    assert result[NAME]["metrics"] == metrics and result[NAME]["coverage"] == coverage == 100
    assert list(metrics) == list(result[NAME]["metrics"])
    assert 0 < metrics["overall"] < 100
    assert result[NAME]["counts"]["scored"] == 24
    assert result[NAME]["judge"]["judgements"] == 24 and result[NAME]["judge"]["models"] == ["test-judge"]
    assert result[NAME]["judge"]["input_tokens"] > 24 * 50
    assert len(judge_server.requests) == requests


def test_an_answers_log_is_joined_with_the_dataset(make_run, judge_server, tmp_path):
    bare = make_run().log(tmp_path, predict_only=True)
    assert judge_server.requests == []
    result = score([bare])[NAME]
    assert same(result, make_run().process())
    assert len(judge_server.requests) == 24
    assert result["card"]["judge"]["model"] == "test-judge"


def test_an_answers_log_goes_with_the_record_of_the_same_answers(make_run, answers, judge_server, home, tmp_path):
    said = [f" {answer}\n" for answer in answers]
    make_run(said=answers).process()
    bare = make_run(said=said).log(tmp_path, predict_only=True)
    assert score([record(home), bare])[NAME]["counts"]["scored"] == 24


def test_an_answers_log_knows_failures_and_repeats(make_run, answers, judge_server, tmp_path):
    said = [[answer, "nothing"] for answer in answers]
    said[0], said[1], said[2] = [None], ["[ERROR] x"], []
    bare = make_run(said=said).log(tmp_path, predict_only=True)
    result = score([bare])[NAME]
    assert (result["counts"]["scored"], result["counts"]["no_answer"]) == (21, 3)
    assert result["judge"]["judgements"] == 42


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row, k: {**row, "input": "another prompt"}, "its prompt is not that of"),
        (lambda row, k: {**row, "doc_id": 23 - row["doc_id"]}, "its prompt is not that of"),
        (lambda row, k: {**row, "doc_id": 24 + k}, "not in the prepared dataset"),
        (lambda row, k: {**row, "doc_id": "0"}, "not in the prepared dataset"),
        (lambda row, k: {**row, "doc_id": -1}, "not in the prepared dataset"),
        (lambda row, k: {key: row[key] for key in row if key != "input"}, "its prompt is not that of"),
    ],
)
def test_an_answers_log_of_another_dataset_is_refused(make_run, judge_server, tmp_path, change, message):
    bare = make_run().log(tmp_path, predict_only=True)
    wrong = edited(bare, bare.with_name("20251130_samples_mt_video_bench.jsonl"), lambda row, k: line(change(row, k)))
    with pytest.raises(PackError, match=message) as raised:
        score([wrong])
    assert str(wrong) in str(raised.value)
    assert judge_server.requests == []


def test_an_answers_log_needs_its_dataset_and_its_name(make_run, judge_server, home, tmp_path):
    bare = make_run().log(tmp_path, predict_only=True)
    nameless = shutil.copy(bare, tmp_path / "answers.jsonl")
    with pytest.raises(PackError, match="--task NAME"):
        score([nameless])
    assert score([nameless], task=NAME)[NAME]["counts"]["scored"] == 24
    with pytest.raises(PackError, match="--task NAME"):
        score([nameless], task="mlvu")
    (home / "datasets").rename(home / "gone")
    with pytest.raises(PackError, match="lmms-eval-tasks prepare mt_video_bench"):
        score([bare])


def test_logs_need_no_dataset(make_run, judge_server, home, tmp_path):
    run = make_run().process()
    run.metrics()
    log = run.log(tmp_path)
    (home / "datasets").rename(home / "gone")
    pool_module._pool.cache_clear()
    assert same(score([log])[NAME], run)
    assert same(score([record(home)])[NAME], run)


def test_logs_of_other_tasks_are_passed_over(make_run, judge_server, tmp_path):
    run = make_run().process()
    run.metrics()
    log = run.log(tmp_path)
    other = log.with_name("20251130_120000_samples_videomme.jsonl")
    other.write_text(line({"doc_id": 0, "filtered_resps": ["A"], "videomme_score": {"card": 1, "id": 2}}) + "{broken\n")
    assert same(score([log.parent])[NAME], run)
    assert same(score([*log.parent.iterdir()])[NAME], run)
    with pytest.raises(PackError, match="No result of our tasks"):
        score([other])


def test_tasks_are_scored_apart(make_run, docs, answers, judge_server, home, tmp_path):
    some = list(task.process_docs(canonical.opened(NAME).rows("memory_recall")))
    said = [answer for doc, answer in zip(docs, answers, strict=True) if doc["ability"] == "memory_recall"]
    whole, part = make_run().process(), make_run(some, said, name="mt_video_bench_memory_recall").process()
    results = score([home / "runs"])
    assert list(results) == [NAME, "mt_video_bench_memory_recall"]
    assert same(results[NAME], whole)
    assert results["mt_video_bench_memory_recall"]["metrics"] == part.metrics()[0]
    assert results["mt_video_bench_memory_recall"]["notes"] == []


@pytest.mark.parametrize("torn", [1, 100, -2])
def test_a_torn_last_line_is_passed_over(make_run, judge_server, home, torn):
    make_run().process().metrics()
    path = record(home)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:torn])
    assert score([path])[NAME]["counts"]["scored"] == 23


BROKEN = {
    "a broken line": b'{"id": \n',
    "binary": b"\xff\xfe\0\n",
    "deep": b"[" * 100_000 + b"\n",
    "an unknown task": line(
        {"id": "a", "task": "mt_other_bench", "answers": [], "status": "unjudged", "card": {}}
    ).encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_log_that_is_broken_in_the_middle_is_refused(make_run, judge_server, home, name):
    make_run().process().metrics()
    path = record(home)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + BROKEN[name] + b"".join(lines[5:]))
    with pytest.raises(PackError, match="line 6"):
        score([path])


@pytest.mark.parametrize("name", ["missing", "empty", "no dictionaries", "a folder without logs", "nothing"])
def test_no_result_is_an_error(tmp_path, name):
    paths = {
        "missing": [tmp_path / "missing.jsonl"],
        "empty": [tmp_path / "empty.jsonl"],
        "no dictionaries": [tmp_path / "other.jsonl"],
        "a folder without logs": [tmp_path / "folder"],
        "nothing": [],
    }
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.jsonl").write_text('7\n[]\nnull\n{"a": {"card": 1}}\n')
    with pytest.raises(PackError, match="missing.jsonl: No such file" if name == "missing" else "No result of our"):
        score(paths[name])


def test_two_runs_are_not_mixed(make_run, answers, judge_server, tmp_path):
    first = make_run().process()
    second = make_run(said=[*answers[:-1], "something else"]).process()
    first.metrics(), second.metrics()
    logs = [first.log(tmp_path / "first"), second.log(tmp_path / "second")]
    with pytest.raises(PackError, match="another answer") as raised:
        score(logs)
    assert str(logs[1]) in str(raised.value) and second.docs[-1]["id"] in str(raised.value)
    assert [score([log])[NAME]["counts"]["scored"] for log in logs] == [24, 24]


def test_parts_of_a_run_are_put_together(make_run, docs, answers, judge_server, home):
    """As the ranks of a run write them."""
    whole = make_run().process()
    metrics, _ = whole.metrics()
    shutil.rmtree(home / "runs")
    for rank in range(3):
        make_run(docs[rank::3], answers[rank::3]).process()
    assert len(list((home / "runs").iterdir())) == 3
    assert score([home / "runs"])[NAME]["metrics"] == metrics


# -------------------------------------------------------------------------------------------------------------- judging


def test_a_run_without_a_judge_is_judged_later(make_run, judge_server, home, monkeypatch, tmp_path):
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    run = make_run().process()
    assert str(run.metrics()[0]["overall"]) == "nan"
    log = run.log(tmp_path)
    result = strict(score([log]))[NAME]
    assert result["metrics"] == {} and result["coverage"] == 0 and result["counts"]["unjudged"] == 24
    assert "24 of 24 unjudged: no judge is configured" in result["notes"]
    assert "coverage" in table({NAME: result})
    with pytest.raises(PackError, match="JUDGE_MODEL"):
        score([log], rejudge=True)

    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "test-judge")
    expected = make_run().process()
    for paths in ([log], [sorted((home / "runs").iterdir())[0]]):
        result = score(paths)[NAME]
        assert same(result, expected) and result["card"]["judge"]["model"] == "test-judge"


def test_the_repeats_of_the_run_are_kept(make_run, random_judge, set_judge, answers, judge_server, home, tmp_path):
    random_judge(1)
    set_judge(repeats=3)
    run = make_run(said=[f"<<{k}>>" for k in range(len(answers))]).process()
    expected, _ = run.metrics()
    set_judge(repeats=1)
    result = score([record(home)])[NAME]
    assert result["metrics"] == expected
    assert result["card"]["judge"]["repeats"] == 3 and result["judge"]["judgements"] == 72
    assert len(judge_server.requests) == 72
    result = score([record(home)], rejudge=True)[NAME]
    assert result["card"]["judge"]["repeats"] == 1 and result["judge"]["judgements"] == 24
    # Judged again, though the verdicts were on disk.
    assert len(judge_server.requests) == 72 + 24


@pytest.mark.parametrize("change", ["model", "base_url", "temperature"])
def test_judges_are_not_mixed(make_run, random_judge, set_judge, answers, judge_server, home, tmp_path, change):
    judge = random_judge(1, refusing=0.2)
    run = make_run(said=[f"<<{k}>>" for k in range(len(answers))]).process()
    run.metrics()
    log = run.log(tmp_path)
    judge.refusing = 0
    other = {"model": "other", "base_url": judge_server.url.replace("127.0.0.1", "localhost"), "temperature": 0.5}
    set_judge(**{change: other[change]})
    requests = len(judge_server.requests)
    for paths in ([log], [record(home)], [log, record(home)]):
        with pytest.raises(PackError, match="--rejudge") as raised:
            score(paths)
        assert '"test-judge"' in str(raised.value)
    assert len(judge_server.requests) == requests
    result = score([log], rejudge=True)[NAME]
    assert result["counts"]["scored"] == 24 and len(judge_server.requests) == requests + 24
    assert result["judge"]["judgements"] == 24
    assert {str(result["card"]["judge"][key]) for key in ("model", "endpoint", "temperature")} >= {str(other[change])}


def test_parts_that_other_judges_scored_are_not_mixed(make_run, docs, answers, judge_server, set_judge, tmp_path):
    logs = []
    for k, model in enumerate(["one", "two"]):
        set_judge(model=model)
        run = make_run(docs[k::2], answers[k::2]).process()
        run.metrics()
        logs.append(run.log(tmp_path / model))
    with pytest.raises(PackError, match=r'"one".*"two"'):
        score(logs)
    assert score(logs, rejudge=True)[NAME]["card"]["judge"]["model"] == "two"


def test_a_scored_log_needs_no_judge(make_run, judge_server, tmp_path, monkeypatch):
    run = make_run().process()
    run.metrics()
    log = run.log(tmp_path)
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    assert same(score([log])[NAME], run)


def test_items_without_answer_belong_to_the_protocol_of_the_judged(
    make_run, answers, judge_server, tmp_path, monkeypatch
):
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    run = make_run(said=["[ERROR] x", *answers[1:]]).process()
    run.metrics()
    log = run.log(tmp_path)
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "test-judge")
    result = score([log])[NAME]
    assert result["card"]["judge"]["model"] == "test-judge"
    assert result["notes"] == ["1 of 24 no_answer: [ERROR] x"]


def test_an_unusable_judge_is_told_once_for_all_tasks(make_run, judge_server, home, logged, monkeypatch):
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    rows = canonical.opened(NAME).rows()
    for hook in (task.process_docs, task.process_docs_no_context, task.process_docs_chat):
        docs = list(hook(rows))
        make_run(docs, name=docs[0]["task"]).process()
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "test-judge")
    monkeypatch.setenv(f"{PREFIX}JUDGE_CONCURRENCY", "2")
    judge_server.reply = lambda *_: Fault("status", status=401, message="boom")
    results = score([home / "runs"])
    assert [result["counts"]["unjudged"] for result in results.values()] == [24, 24, 24]
    assert len(judge_server.requests) <= 2 and sum("Judging ends" in text for text in logged) == 1
    judge_server.reply = lambda *_: "nothing to read"
    judge_server.reset()
    score([home / "runs"])
    assert len(judge_server.requests) > 24


# -------------------------------------------------------------------------------------------------------------- results


def test_official_rounding_rounds_at_each_level(make_run, random_judge, docs, home):
    judge = random_judge(3)
    run = make_run(said=[f"<<{doc['id']}>>" for doc in docs]).process()
    run.metrics()
    result = score([record(home)], official_rounding=True)[NAME]["metrics"]
    rounds, dialogues = defaultdict(list), defaultdict(list)
    for doc in docs:
        [verdict] = judge.said[doc["id"]]
        right = [check["expected"] == mine for check, mine in zip(doc["checklist"], verdict, strict=True)]
        rounds[doc["ability"], doc["dialogue"]].append(round(100 * sum(right) / len(right), 2))
    for (ability, _), scores in rounds.items():
        dialogues[ability].append(round(fmean(scores), 2))
    abilities = {ability: round(fmean(scores), 2) for ability, scores in dialogues.items()}
    assert {ability: result[ability] for ability in abilities} == abilities
    assert result["overall"] == round(fmean(abilities.values()), 2)
    exact = score([record(home)])[NAME]["metrics"]
    assert exact != result and exact == pytest.approx(result, abs=0.02)


def test_absent_abilities_are_noted_and_no_zero(make_run, docs, answers, judge_server, home):
    keep = [k for k, doc in enumerate(docs) if doc["ability"] in ("memory_recall", "answer_refusal")]
    run = make_run([docs[k] for k in keep], [answers[k] for k in keep]).process()
    result = strict(score([record(home)]))[NAME]
    assert same(result, run)
    assert set(result["metrics"]) == {"overall", "perceptivity", "interactivity", "memory_recall", "answer_refusal"}
    absent, part = result["notes"]
    assert absent.startswith("means are over 2 of 6 abilities; absent: object_reference, content_summary")
    assert part.startswith(f"{len(keep)} of the dataset's 24 questions are in these files")
    assert "content_summary" not in "\n".join(table({NAME: result}).splitlines()[:8])


def test_nothing_scored_is_strict_json(make_run, docs, judge_server, home, tmp_path, capsys):
    run = make_run(said=["[ERROR] x"] * len(docs)).process()
    run.metrics()
    log = run.log(tmp_path)
    assert judge_server.requests == []
    for path in (log, record(home)):
        result = strict(score([path]))[NAME]
        assert result["metrics"] == {} and result["coverage"] == 0.0
        assert result["counts"]["no_answer"] == 24
    assert main(["score", str(log), "--json", "--output", str(tmp_path / "out.json")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "out.json").read_text()) == {NAME: result}


def test_only_excluded_beside_the_asked_count_in_nothing(make_run, docs, answers, judge_server, home):
    beside = {"id": "x/1", "ability": "memory_recall", "status": "excluded", "reason": "four of five answers"}
    missing = {"id": "y/1", "ability": "memory_recall", "status": "no_answer", "reason": "video y is missing"}
    run = make_run([{**docs[0], "skipped": [beside, missing, missing]}], answers[:1]).process()
    result = score([record(home)])[NAME]
    assert result["coverage"] == run.metrics()[1] == pytest.approx(100 / 3)
    assert result["counts"] == {
        "scored": 1,
        "unjudged": 0,
        "no_answer": 2,
        "excluded": 1,
        "unread": 0,
        "truncated": 0,
    }


def test_a_result_tells_its_protocol(make_run, judge_server, home, mt_prepared):
    judge_server.answered_as = "snapshot-1"
    make_run().process()
    result = score([record(home)])[NAME]
    card = result["card"]
    assert card["judge"] == {"model": "test-judge", "endpoint": judge_server.url, "repeats": 1, "temperature": None}
    assert result["judge"]["models"] == ["snapshot-1"]
    assert card["dataset"] == canonical.opened(NAME).fingerprint and card["version"] == task.VERSION
    assert set(card["prompts"]) == {"inference", "system", "judge", "answer"}
    text = table({NAME: result})
    assert "judged by snapshot-1: 24 judgements" in text and "24 scored" in text


def test_no_file_holds_the_key(make_run, judge_server, home, tmp_path, set_judge, logged):
    set_judge(base_url=judge_server.url.replace("//", "//user:pass%40word@"))
    key = "sk-secret-of-the-test-judge"
    secrets = [key, "pass%40word", "pass@word"]

    def reply(body, n):
        echo = " ".join([*secrets, judge_server.authorizations[n]])
        return Fault("status", status=400 if n % 2 else 401, message=echo) if n > 5 else '{"A1": "Yes"}' + echo

    judge_server.reply, judge_server.answered_as = reply, f"judge {key}"
    run = make_run().process()
    run.metrics()
    (tmp_path / "out.json").write_text(json.dumps(score([run.log(tmp_path)])))
    secrets.append(judge_server.authorizations[-1].split()[1])
    files = [path for folder in (home, tmp_path) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    texts = [path.read_bytes().decode("utf-8", "replace") for path in files] + logged
    assert any("HTTP 40" in text for text in texts)
    assert not [secret for secret in secrets for text in texts if secret in text]
