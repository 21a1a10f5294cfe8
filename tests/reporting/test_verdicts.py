from lmms_eval_tasks.mt_video_bench import task
from lmms_eval_tasks.reporting.runs import find_runs
from lmms_eval_tasks.reporting.verdicts import look_up
from lmms_eval_tasks.results.items import Item
from lmms_eval_tasks.settings import PREFIX

from .stand_ins import questions


def test_verdicts_on_disk_are_found_and_nobody_is_asked(mt_prepared, home, judge_server, monkeypatch):
    from lmms_eval_tasks import canonical

    docs = list(task.process_docs(canonical.opened("mt_video_bench").rows()))
    results = [task.process_results(doc, [doc["reference"]]) for doc in docs[:-1]]
    scored = {item["id"]: item.settle()["score"] for item in (result["overall"] for result in results)}
    asked = len(judge_server.requests)
    task.records.append(task.item(docs[-1], ["Never judged."]))
    # Whatever the settings name now.
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "another-judge")
    [run] = find_runs([str(home / "runs")])
    assert {item["id"]: item["score"] for item in run.items if "score" in item} == scored
    [left] = [item for item in run.items if "score" not in item]
    assert (left["status"], left["id"]) == ("unjudged", docs[-1]["id"])
    assert len(judge_server.requests) == asked
    assert len(scored) == len(docs) - 1


def test_what_rules_score_is_scored():
    [item] = questions(1, each=1)[:1]
    del item["score"]
    item |= {"status": "unjudged", "letters": ["A"], "answer": "a", "answers": ["(A)"]}
    item = Item(item)
    look_up([item])
    assert (item["status"], item["score"]) == ("scored", 100)
