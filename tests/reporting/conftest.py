import json

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.mt_video_bench import metrics, task
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.reporting.report import report
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import judge_by_phrases
from utils.sample_release import gold_answers, sample_answers

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\"></script>\u2028 'quoted' \\"
JUDGE = {"model": "test-judge", "endpoint": "http://127.0.0.1:9/v1", "repeats": 1, "temperature": None}


def write_log(place, model, items, stamp="20260101_000000"):
    """A sample log and the results beside it, as lmms-eval leaves them; where there is no model, no results."""
    place.mkdir(parents=True, exist_ok=True)
    name = items[0]["task"]
    lines = [{"doc_id": number, "target": "", "overall": item, "input": ""} for number, item in enumerate(items)]
    log = place / f"{stamp}_samples_{name}.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    if model:
        (place / f"{stamp}_results.json").write_text(json.dumps({"results": {}, "model_name": model}), "utf-8")
    return log


def judged(doc, answer):
    """A turn's item with the verdict of the rule-based judge."""
    item = dict(task.item(doc, [answer]))
    questions = "\n".join(f"Q{number}: {check['question']}" for number, check in enumerate(doc["checklist"], start=1))
    verdict = [word.lower() for word in json.loads(judge_by_phrases(answer, questions)).values()]
    score = metrics.answer_score([check["expected"] for check in doc["checklist"]], [verdict])
    return item | {
        "status": "scored",
        "verdicts": [[verdict]],
        "score": score,
        "card": {**item["card"], "judge": JUDGE},
    }


@pytest.fixture(scope="session")
def sample_report(mt_release, tmp_path_factory):
    """A report of two models on the sample release, with a clip at hand: its folder and what was returned."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(f"{PREFIX}HOME", str(folder / "home"))
        patched.setenv(f"{PREFIX}FRAMES", "8")
        prepare("mt_video_bench", mt_release)
        docs = list(task.process_docs(canonical.opened("mt_video_bench").rows()))
        canonical.clip("mt_video_bench", "car_talk")
        right, weak = gold_answers(mt_release), sample_answers(mt_release)
        best = [judged(doc, right[doc["question"]]) for doc in docs]
        worse = [judged(doc, weak[doc["question"]]) for doc in docs]
        worse[0]["answers"] = [HOSTILE]
        worse[1] |= {"status": "no_answer", "reason": "[LMMS_EVAL_REQUEST_FAILED after 3 retries]"}
        for key in ("score", "verdicts"):
            del worse[1][key]
        write_log(folder / "logs" / "org__model-a", "org/model-a", best)
        write_log(folder / "logs" / "org__model-b", "org/<b>model", worse)
        result = report([f"first={folder / 'logs' / 'org__model-a'}", str(folder / "logs" / "org__model-b")],
                        folder / "out")  # fmt: skip
    return folder / "out", result
