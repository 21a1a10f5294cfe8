import copy
import json
import random
import re
import shutil

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.mt_video_bench import task
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release import sample_answers


@pytest.fixture(scope="session")
def prepared_once(mt_release, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(f"{PREFIX}HOME", str(tmp_path_factory.mktemp("prepared")))
        folder = prepare("mt_video_bench", mt_release).folder
        return folder, list(task.process_docs(canonical.opened("mt_video_bench").rows()))


@pytest.fixture
def mt_prepared(prepared_once, home):
    folder = home / "datasets" / "mt_video_bench"
    shutil.copytree(prepared_once[0], folder, symlinks=True)
    return folder


@pytest.fixture
def docs(prepared_once, mt_prepared):
    return copy.deepcopy(prepared_once[1])


@pytest.fixture
def answers(mt_release, docs):
    known = sample_answers(mt_release)
    return [known[doc["question"]] for doc in docs]


class Run:
    """What lmms-eval does with a run's answers: scores them, and writes sample logs as its 0.7.3 does."""

    def __init__(self, docs, answers, name="mt_video_bench"):
        self.docs, self.name = docs, name
        self.answers = [[answer] if isinstance(answer, str) else answer for answer in answers]
        self.results = []

    def process(self):
        task.records.begin(self.name)
        for doc, of in zip(self.docs, self.answers, strict=True):
            self.results.append(task.process_results(doc, of))
        return self

    def metrics(self):
        found = {}
        for metric in [*task.metrics.GROUPS, *task.metrics.ABILITIES]:
            of = [result[metric] for result in self.results if metric in result]
            if of:
                found[metric] = task.score(of)
        return found, coverage([result["coverage"] for result in self.results])

    def log(self, folder, predict_only=False):
        results = [{"bypass": 999}] * len(self.docs) if predict_only else self.results
        path = folder / "model" / f"20251130_120000_samples_{self.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = enumerate(zip(self.docs, self.answers, results, strict=True))
        lines = [json.dumps(self._sample(*row), default=str, ensure_ascii=False) + "\n" for row in rows]
        path.write_text("".join(lines), "utf-8")
        (path.parent / "20251130_120000_results.json").write_text(json.dumps({"results": {}}, indent=2), "utf-8")
        return path

    def _sample(self, doc_id, row):
        doc, answers, result = row
        return {
            "doc_id": doc_id,
            "target": doc["reference"],
            "filtered_resps": answers,
            "token_counts": [None],
            "doc_hash": "0" * 64,
            **result,
            "input": task.doc_to_text(doc),
        }


@pytest.fixture
def make_run(docs, answers):
    """`make_run()`: a finished run of the sample answers; other docs and answers can be given."""

    def make(of=None, said=None, **more):
        return Run(docs if of is None else of, answers if said is None else said, **more)

    return make


@pytest.fixture
def set_judge(judge_server, monkeypatch):
    def set_to(**options):
        for name, value in options.items():
            monkeypatch.setenv(f"{PREFIX}JUDGE_{name.upper()}", str(value))

    return set_to


class RandomJudge:
    """Answers each checklist at random, and keeps what it said; refuses some requests for good."""

    def __init__(self, seed, refusing=0.0):
        self.dice = random.Random(seed)
        self.refusing = refusing
        self.said = {}

    def __call__(self, body, n):
        text = body["messages"][0]["content"]
        answer = re.search(r"<<(.*?)>>", text)[1]
        questions = re.findall(r"^Q\d+:", text, re.MULTILINE)
        verdict = [self.dice.choice(["yes", "no"]) for _ in questions]
        if self.dice.random() < self.refusing:
            verdict = None
        self.said.setdefault(answer, []).append(verdict)
        if verdict is None:
            return {"content": None, "finish_reason": "content_filter"}
        return json.dumps({f"A{k}": word.title() for k, word in enumerate(verdict, start=1)})


@pytest.fixture
def random_judge(judge_server):
    def make(seed, refusing=0.0):
        judge_server.reply = RandomJudge(seed, refusing)
        return judge_server.reply

    return make
