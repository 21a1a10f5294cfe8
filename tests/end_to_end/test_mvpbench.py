"""MVPBench through lmms-eval's own evaluator: several videos in one request, a local model and a local judge."""

import base64
import io
import math
import re

import pytest
from PIL import Image

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mvpbench import prompts
from lmms_eval_tasks.mvpbench.metrics import DOMAINS, SUBTASKS
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import evaluate, metrics, save, text_and_videos
from utils.openai_server import Fault
from utils.sample_release.mvpbench import gold_answers, make_mvpbench, played, rows, sample_answers
from utils.tiny_vlm import make_tiny_vlm

NAMES = {"overall", *DOMAINS, *SUBTASKS, "coverage"} | {
    f"{subtask}_{what}" for subtask in SUBTASKS for what in ("accuracy", "chance", "first_option")
}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_mvpbench(tmp_path_factory.mktemp("release") / "mvpbench")


@pytest.fixture(autouse=True)
def prepared(release, home, monkeypatch):
    """The sample release, prepared; the backends get its files themselves, which need not be made."""
    monkeypatch.setenv(f"{PREFIX}CLIPS", "0")
    return prepare("mvpbench", release).folder


@pytest.fixture
def clips(monkeypatch):
    """Clips of four frames each."""
    monkeypatch.setenv(f"{PREFIX}CLIPS", "1")
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")


def run(tasks, server, frames=False, **options):
    """Runs tasks; the model is sent frames, or the clips' addresses alone, which takes a tenth of the time."""
    arguments = f"model_version=model,base_url={server.url},api_key=none,num_concurrent=4,max_retries=1"
    more = "max_frames_num=4" if frames or options.get("force_simple") else "pass_video_url=True"
    return evaluate(tasks, server, model_args=f"{arguments},{more}", **options)


def offline(log, task="mvpbench"):
    result = score([log])[task]
    return {**result["metrics"], "coverage": result["coverage"]}


def asked_of(server, model):
    return [request["messages"] for request in server.requests if request["model"] == model]


def by_hand(says=lambda row: row.means):
    """All metrics of the sample, from what the model says; in the paper's words."""
    found, accuracies, chances = {}, {}, {}
    for subtask in SUBTASKS:
        mine = [row for row in rows() if row.subtask == subtask]
        gold = [[int(digit) for digit in re.findall(r"\d", str(row.answer))] for row in mine]
        options = [row.query.count("<video>") - row.query.count("Ref Video") for row in mine]
        ranking = len(gold[0]) > 1
        accuracies[subtask] = sum(says(row) == right for row, right in zip(mine, gold, strict=True)) / len(mine)
        chances[subtask] = sum(1 / (math.factorial(k) if ranking else k) for k in options) / len(mine)
        first = sum(
            says(row) == list(range(1, 1 + (k if ranking else 1))) for row, k in zip(mine, options, strict=True)
        )
        found[subtask] = 100 * (accuracies[subtask] - chances[subtask]) / (1 - chances[subtask])
        found[f"{subtask}_accuracy"] = 100 * accuracies[subtask]
        found[f"{subtask}_chance"] = 100 * chances[subtask]
        found[f"{subtask}_first_option"] = 100 * first / len(mine)
    for name, members in {"overall": SUBTASKS, **DOMAINS}.items():
        weights = [1 - chances[subtask] for subtask in members]
        weighted = sum(weight * found[subtask] for weight, subtask in zip(weights, members, strict=True))
        found[name] = weighted / sum(weights)
    return found


def test_gold_answers_score_full_marks(judge_server):
    judge_server.reply = played(gold_answers())
    found = metrics(run(["mvpbench"], judge_server), "mvpbench")
    assert set(found) == NAMES
    full = {"overall", "coverage", *DOMAINS, *SUBTASKS, *(f"{subtask}_accuracy" for subtask in SUBTASKS)}
    assert {name: found[name] for name in full} == pytest.approx(dict.fromkeys(full, 100), abs=1e-9)
    # Nothing was to be asked but whether the judge is there.
    assert len(asked_of(judge_server, "test-judge")) == 1


def test_a_middling_model_scores_the_same_in_every_way_to_run_it(judge_server, tmp_path):
    judge_server.reply = played(sample_answers())
    results = run(["mvpbench"], judge_server)
    found = metrics(results, "mvpbench")
    assert found == pytest.approx({**by_hand(), "coverage": 100}, abs=1e-9)
    assert 20 < found["overall"] < 80
    unread = [row for row in rows() if "one scene" in row.weak or "cannot see" in row.weak]
    passages = [str(messages) for messages in asked_of(judge_server, "test-judge")][1:]
    assert 2 <= len(passages) <= 5 and all(any(row.weak in text for text in passages) for row in unread)

    simple = metrics(run(["mvpbench_gait"], judge_server, force_simple=True), "mvpbench_gait")
    assert simple["gait"] == found["gait"]

    judged = len(asked_of(judge_server, "test-judge"))
    assert offline(save(tmp_path / "scored", results, "mvpbench")) == found
    predicted = run(["mvpbench"], judge_server, predict_only=True)
    assert offline(save(tmp_path / "predicted", predicted, "mvpbench")) == found
    assert len(asked_of(judge_server, "test-judge")) == judged

    items = [sample["overall"] for sample in results["samples"]["mvpbench"]]
    assert sum(item.get("unread", 0) for item in items) == sum(not row.means for row in rows())


def test_a_subtask_is_a_task_of_its_own(judge_server):
    judge_server.reply = played(sample_answers())
    found = metrics(run(["mvpbench_gait"], judge_server), "mvpbench_gait")
    shares = {f"gait_{what}" for what in ("accuracy", "chance", "first_option")}
    assert set(found) == {"overall", "similar_video_pairing", "gait", "coverage", *shares}
    assert found["overall"] == found["similar_video_pairing"] == pytest.approx(found["gait"])
    assert found["gait"] == pytest.approx(by_hand()["gait"])


def test_all_fourteen_tasks_give_what_the_whole_gives(judge_server):
    judge_server.reply = played(sample_answers())
    results = run([f"mvpbench_{subtask}" for subtask in SUBTASKS], judge_server)
    expected = by_hand()
    for subtask in SUBTASKS:
        found = metrics(results, f"mvpbench_{subtask}")
        for name in (subtask, f"{subtask}_accuracy", f"{subtask}_chance", f"{subtask}_first_option"):
            assert found[name] == pytest.approx(expected[name], abs=1e-9)


def test_without_a_judge_unread_answers_are_wrong_and_the_run_says_so(judge_server, monkeypatch, logged, tmp_path):
    judge_server.reply = played(sample_answers())
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    results = run(["mvpbench"], judge_server)
    items = [sample["overall"] for sample in results["samples"]["mvpbench"]]
    assert {item["status"] for item in items} == {"scored"}
    read = {item["id"]: item["choices"][0] or [] for item in items}
    by_query = {row["query"]: read[row["id"]] for row in canonical.opened("mvpbench").rows()}
    found = metrics(results, "mvpbench")
    assert found == pytest.approx({**by_hand(lambda row: by_query[row.query]), "coverage": 100}, abs=1e-9)
    unread = sum(item.get("unread", 0) for item in items)
    assert unread >= sum(not row.means for row in rows()) > 0
    assert any(f"{unread} answers unread" in line for line in logged)
    assert any("count as wrong and `unread`" in line for line in logged)
    assert offline(save(tmp_path, results, "mvpbench")) == found


def test_a_failing_judge_leaves_answers_unjudged_which_are_judged_later(judge_server, tmp_path, quick_retries):
    fine = played(sample_answers())

    def failing(body, n):
        return Fault("status", status=500) if "You are given a passage" in str(body) else fine(body, n)

    judge_server.reply = failing
    results = run(["mvpbench"], judge_server)
    items = [sample["overall"] for sample in results["samples"]["mvpbench"]]
    unjudged = [item for item in items if item["status"] == "unjudged"]
    assert 0 < len(unjudged) < len(items) and not any("score" in item or "unread" in item for item in unjudged)
    expected = 100 * (len(items) - len(unjudged)) / len(items)
    assert metrics(results, "mvpbench")["coverage"] == pytest.approx(expected)
    judge_server.reply = fine
    assert offline(save(tmp_path, results, "mvpbench")) == pytest.approx({**by_hand(), "coverage": 100}, abs=1e-9)


def test_a_judge_that_talks_nonsense_leaves_answers_unjudged(judge_server):
    fine = played(sample_answers())
    judge_server.reply = lambda body, n: "Well …" if "You are given a passage" in str(body) else fine(body, n)
    results = run(["mvpbench_common_sense_physics"], judge_server)
    statuses = [sample["overall"]["status"] for sample in results["samples"]["mvpbench_common_sense_physics"]]
    assert statuses == ["scored", "scored", "unjudged"]


def test_failed_requests_are_no_answer(judge_server):
    fine = played(gold_answers())

    def reply(body, n):
        failing = body["model"] == "model" and "(Question 12.)" in str(body)
        return Fault("status", status=400, message="too long") if failing else fine(body, n)

    judge_server.reply = reply
    results = run(["mvpbench_weather"], judge_server)
    found = metrics(results, "mvpbench_weather")
    assert found["coverage"] == pytest.approx(200 / 3) and found["weather_accuracy"] == 100
    statuses = [sample["overall"]["status"] for sample in results["samples"]["mvpbench_weather"]]
    assert sorted(statuses) == ["no_answer", "scored", "scored"]


def test_questions_about_missing_videos_stop_the_run_or_are_skipped(judge_server, prepared, monkeypatch):
    judge_server.reply = played(gold_answers())
    (prepared / "videos" / "gait" / "00001.mp4").unlink()
    with pytest.raises(PackError, match=r"1 of 80 videos are missing: gait/00001\.mp4"):
        run(["mvpbench"], judge_server)
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    found = metrics(run(["mvpbench_gait"], judge_server), "mvpbench_gait")
    assert (found["coverage"], found["gait_accuracy"]) == (50, 100)


def pictures(messages):
    """A request's parts in their order: texts, and sizes of pictures."""
    [message] = messages
    for part in message["content"]:
        if part["type"] == "text":
            yield part["text"]
        else:
            yield Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition("base64,")[2]))).size


@pytest.mark.usefixtures("clips")
def test_openai_is_sent_every_video_once_where_its_placeholder_stands(judge_server):
    judge_server.reply = played(gold_answers())
    run(["mvpbench_multiview_pairing"], judge_server, frames=True)
    sent = {"".join(part for part in parts if isinstance(part, str)): parts for parts in map(list, map(
        pictures, asked_of(judge_server, "model")))}  # fmt: skip
    for row in canonical.opened("mvpbench").rows("multiview_pairing"):
        texts = row["query"].split("<video>")
        sizes = [size(name) for name in row["videos"]]
        assert len(set(sizes)) > 1
        expected = [texts[0]]
        for shape, text in zip(sizes, texts[1:], strict=True):
            expected += [shape] * 4 + [text]
        got = sent["".join(texts)]
        assert [part for part in got if isinstance(part, str)] == texts
        assert [type(part) for part in got] == [type(part) for part in expected]
        assert alike([part for part in got if isinstance(part, tuple)], [shape for shape in sizes for _ in range(4)])


@pytest.mark.usefixtures("clips")
def test_a_simple_backend_is_sent_the_numbered_text_and_every_video_in_order(judge_server):
    judge_server.reply = played(gold_answers())
    run(["mvpbench_multiview_pairing"], judge_server, force_simple=True)
    sent = {parts[0]: parts[1:] for parts in map(list, map(pictures, asked_of(judge_server, "model")))}
    for row in canonical.opened("mvpbench").rows("multiview_pairing"):
        expected = [size(name) for name in row["videos"] for _ in range(4)]
        assert alike(sent[prompts.numbered(row["query"])], expected)


def size(name):
    """(width, height) of a video."""
    import av

    path = canonical.opened("mvpbench").videos.find(name)
    with av.open(str(path)) as container:
        return container.streams.video[0].width, container.streams.video[0].height


def alike(shapes, others):
    """Whether frames have these proportions, and in this order: backends change their sizes."""
    ratios = [[width / height for width, height in of] for of in (shapes, others)]
    return len(shapes) == len(others) and all(abs(math.log2(a / b)) < 0.45 for a, b in zip(*ratios, strict=True))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_vlm(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.mark.usefixtures("clips")
def test_qwen_processes_every_video_of_a_question_in_order(judge_server, tiny, monkeypatch):
    import transformers

    seen = []
    process = transformers.Qwen2_5_VLProcessor.__call__

    def spy(self, *args, **kwargs):
        inputs = process(self, *args, **kwargs)
        seen.append((self.tokenizer.decode(inputs["input_ids"][0]), inputs["video_grid_thw"].tolist()))
        return inputs

    monkeypatch.setattr(transformers.Qwen2_5_VLProcessor, "__call__", spy)
    arguments = f"pretrained={tiny},device_map=cpu,attn_implementation=sdpa,max_num_frames=4"
    results = evaluate(
        ["mvpbench_multiview_pairing"], judge_server, model="qwen2_5_vl", device="cpu", batch_size=1,
        model_args=f"{arguments},min_pixels=3136,max_pixels=50176", gen_kwargs="max_new_tokens=4",
    )  # fmt: skip
    read = {tuple(row["query"].split("<video>")): row for row in canonical.opened("mvpbench").rows("multiview_pairing")}
    assert len(seen) == len(read) == 2
    for prompt, grids in seen:
        [texts] = [texts for texts in read if texts[-1] in prompt]
        shapes = [size(name) for name in read[texts]["videos"]]
        assert [frames for frames, _, _ in grids] == [2] * 4
        assert alike([(width, height) for _, height, width in grids], shapes)
        # Text and videos in turn; a video's tokens stand between marks.
        parts = re.split(r"<\|vision_start\|>(?:<\|video_pad\|>)+<\|vision_end\|>", prompt)
        assert parts[0].endswith(texts[0]) and parts[-1].startswith(texts[-1]) and tuple(parts[1:-1]) == texts[1:-1]
    items = [sample["overall"] for sample in results["samples"]["mvpbench_multiview_pairing"]]
    assert all(item["answers"][0] for item in items)


def test_captions_take_the_place_of_the_videos_and_each_video_is_described_once(judge_server):
    gold = gold_answers()

    def reply(body, n):
        text, videos = text_and_videos(body)
        if videos:
            assert text == prompts.CAPTION
            return f"[shows {videos[0].rpartition('/')[2]}]"
        query = re.sub(r'"\[shows [^"]*" ', "<video>", text)
        return gold[query]

    judge_server.reply = reply
    results = run(["mvpbench_captions"], judge_server)
    assert metrics(results, "mvpbench_captions")["overall"] == pytest.approx(100)
    asked = [text_and_videos(request) for request in judge_server.requests if request["model"] == "model"]
    shown = [video for _, videos in asked for video in videos]
    every = {name for row in canonical.opened("mvpbench").rows() for name in row["videos"]}
    assert len(shown) == len(set(shown)) == len(every)
    assert sum(not videos for _, videos in asked) == len(list(rows()))
    for sample in results["samples"]["mvpbench_captions"]:
        [said] = sample["overall"]["transcripts"]
        assert [turn["videos"] for turn in said[:-1]] == [[name] for name in said_videos(sample["overall"]["id"])]
        assert said[-1]["videos"] == []


def said_videos(name):
    return next(row["videos"] for row in canonical.opened("mvpbench").rows() if row["id"] == name)


def test_scores_of_videos_alone_give_the_answers(judge_server, tmp_path, home):
    table = {}
    for row in canonical.opened("mvpbench").rows("weather"):
        for place, name in enumerate(row["videos"]):
            table[name] = 9 if [place + 1] == row["gold"] else 1 + place / 10

    def reply(body, n):
        _, [video] = text_and_videos(body) if body["model"] == "model" else ("", [""])
        return f"Score: {table.get('/'.join(video.split('/')[-2:]), 5)}/10"

    judge_server.reply = reply
    task = "mvpbench_single_scores"
    results = run([task], judge_server)
    found = metrics(results, task)
    assert found["weather_accuracy"] == 100
    # Equal scores leave an answer open: it is wrong, and counted.
    assert found["forensic_accuracy"] == 0
    flags = [sample["overall"].get("unread", 0) for sample in results["samples"][task]]
    assert sum(flags) == sum(row.subtask != "weather" for row in rows())
    for log in (save(tmp_path, results, task), *(home / "runs").glob(f"*-{task}-*.jsonl")):
        result = score([log])[task]
        assert {**result["metrics"], "coverage": result["coverage"]} == found


@pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])
def test_turns_of_text_alone_reach_a_real_backend(judge_server, clips, tmp_path, simple):
    tiny = make_tiny_vlm(tmp_path / "tiny")
    arguments = f"pretrained={tiny},device_map=cpu,attn_implementation=eager,max_num_frames=4,min_pixels=3136"
    task = "mvpbench_captions"
    results = evaluate(
        [task], judge_server, model="qwen2_5_vl", model_args=f"{arguments},max_pixels=12544", device="cpu",
        batch_size=1, limit=1, gen_kwargs="max_new_tokens=8", force_simple=simple,
    )  # fmt: skip
    [sample] = results["samples"][task]
    assert sample["overall"]["status"] == "scored" and all(
        turn["reply"] for turn in sample["overall"]["transcripts"][0]
    )
