"""What the pack relies on in lmms-eval, piece by piece: where one of these fails, its message says what breaks with it.

The installed sources are called with small stand-ins, or read; no model is built and nothing is downloaded.
"""

import ast
import dataclasses
import inspect
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import lmms_eval
import pytest
from lmms_eval import evaluator
from lmms_eval.__main__ import cli_evaluate_single
from lmms_eval.api.instance import GenerationResult, Instance, unwrap_generation_output
from lmms_eval.api.reasoning import parse_reasoning_tags_config
from lmms_eval.api.task import ConfigurableMessagesTask, ConfigurableTask
from lmms_eval.caching.response_cache import ResponseCache, extract_gen_kwargs, is_deterministic
from lmms_eval.filters import build_filter_ensemble
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.models import MODEL_REGISTRY_V2
from lmms_eval.protocol import ChatMessages
from lmms_eval.tasks import TaskManager

from lmms_eval_tasks.answers.failures import _SENTINELS, FAILED, NO_CONTENT, EveryAnswer, is_failure
from lmms_eval_tasks.dialogue.adapter import Conversations, EveryTranscript, transcripts
from lmms_eval_tasks.dialogue.program import Turn
from lmms_eval_tasks.media.backends import ALIASES, BACKENDS
from lmms_eval_tasks.results.score import _LOG_NAME, _lines

SOURCES = Path(lmms_eval.__file__).parent
WHERE = {"task": "t", "split": "test", "doc_id": 3, "repeats": 1}
KWARGS = {"until": [], "temperature": 0, "do_sample": False, "max_new_tokens": 16}


def parameters(function) -> list[str]:
    return list(inspect.signature(inspect.unwrap(function)).parameters)


SIGNATURES = [
    (
        TaskManager.initialize_tasks,
        ["self", "include_path", "include_defaults"],
        "our tasks stand in lmms-eval's index",
    ),
    (TaskManager._get_task_and_group, ["self", "task_dir"], "what the index holds of a task is learned from it"),
    (TaskManager.match_tasks, ["self", "task_list"], "the checks run when the command line matches its task names"),
    (
        TaskManager.load_task_or_group,
        ["self", "task_list", "task_type"],
        "in process the checks run when tasks are loaded",
    ),
    (
        evaluator._run_generate_until_agentic,
        ["lm", "requests", "agentic_trace_mode", "response_cache"],
        "conversations run in lock step in its place",
    ),
    (
        ChatMessages.encode_image,
        ["self", "image", "cache", "image_format", "quality"],
        "its cache of frames, which confuses them, is kept from being used",
    ),
    (cli_evaluate_single, ["args"], "the check before the run finds the command line in this local variable"),
    (ConfigurableTask.process_results, ["self", "doc", "results", "full_docs"], "our hooks are called by it"),
    (
        ResponseCache.execute,
        ["self", "lm", "reqtype", "requests"],
        "a batch of turns is answered by it with --use_cache",
    ),
]


@pytest.mark.parametrize(("function", "expected", "use"), SIGNATURES, ids=[of[0].__qualname__ for of in SIGNATURES])
def test_signatures(function, expected, use):
    assert parameters(function) == expected, f"{function.__qualname__} has other parameters, on which depends: {use}"


def test_the_check_in_process_finds_what_it_looks_for():
    missing = {"model", "model_args", "limit", "predict_only", "force_simple"} - set(
        parameters(evaluator.simple_evaluate)
    )
    assert not missing, (
        f"plugin._checked_in_process reads these arguments of simple_evaluate, which are gone: {missing}"
    )


def test_the_command_line_matches_its_tasks_before_it_builds_a_model():
    source = inspect.getsource(cli_evaluate_single)
    first, then = source.find(".match_tasks("), source.find("simple_evaluate(")
    assert 0 <= first < then, "the checks in match_tasks must come before the model is built, in simple_evaluate"


def test_lmms_eval_looks_its_agentic_function_up_where_it_is_replaced():
    calls = [node.func for node in ast.walk(ast.parse(inspect.getsource(evaluator))) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call, ast.Name) and call.id == "_run_generate_until_agentic"]
    assert named, "plugin.run_in_lock_step replaces evaluator._run_generate_until_agentic, which must be called by name"


# ---------------------------------------------------------------------------------------------------------- requests


def test_an_instance_is_made_as_the_lock_step_makes_it():
    names = [field.name for field in dataclasses.fields(Instance)]
    assert names[:4] == ["request_type", "arguments", "idx", "metadata"], (
        "plugin._conversations makes instances by these"
    )
    made = Instance("generate_until", ("text", {}), idx=2, metadata=WHERE)
    assert (made.args, made.idx) == (("text", {}), 2), "backends and the response cache read these two"
    assert (made.task_name, made.doc_id) == ("t", 3), "the key of the response cache holds these two"


REPLIES = [("B", "B"), (GenerationResult("B"), "B"), (("B", {"input_tokens": 1}), "B"), (GenerationResult(None), None)]


@pytest.mark.parametrize(("output", "text"), REPLIES, ids=repr)
def test_what_a_backend_returns_is_unwrapped_to_its_text(output, text):
    found = unwrap_generation_output(output)
    assert found[0] == text, "plugin._conversations takes the reply's text from the first value"


LAYOUTS = {
    ("generate_until", "simple"): ["text", "kwargs", "visual", "doc_id", "task", "split"],
    ("generate_until", "chat"): ["text", "messages", "kwargs", "doc_id", "task", "split"],
    ("generate_until_agentic", "simple"): ["text", "kwargs", "visual", "doc_to_text", "doc_id", "task", "split"],
    ("generate_until_agentic", "chat"): ["text", "kwargs", "visual", "doc_to_text", "doc_id", "task", "split"],
}


@pytest.mark.parametrize(("output_type", "kind"), LAYOUTS)
def test_the_order_of_a_requests_arguments(output_type, kind):
    def doc_to_text(doc, lmms_eval_specific_kwargs=None):
        return ""

    task = SimpleNamespace(
        OUTPUT_TYPE=output_type,
        config=SimpleNamespace(generation_kwargs=dict(KWARGS), task="t", doc_to_text=doc_to_text),
        doc_to_visual="visual",
        doc_to_messages="messages",
        lmms_eval_specific_kwargs={"text_first": False},
    )
    owner = ConfigurableMessagesTask if kind == "chat" else ConfigurableTask
    request = owner.construct_requests(task, doc_id=3, ctx="text", metadata=WHERE)
    seen = {"text": "text", "visual": "visual", "messages": "messages", "doc_id": 3, "task": "t", "split": "test"}
    values = {**seen, "kwargs": KWARGS}
    for name, value in zip(LAYOUTS[output_type, kind], request.args, strict=True):
        if name == "doc_to_text":
            assert (
                isinstance(value, partial)
                and value.func is doc_to_text
                and value.keywords == {"lmms_eval_specific_kwargs": {"text_first": False}}
            ), "plugin._is_ours and _conversations find the program and the model's kwargs in this partial"
        else:
            assert value == values[name], f"plugin._conversations builds and reads requests with {name} in this place"
    assert request.request_type == output_type and request.idx == 0


def test_the_serial_path_asks_a_conversation_as_the_adapter_answers():
    """Where lmms-eval's function is not replaced: `doc_to_text` after every reply, ended by its third value."""

    def program(doc):
        first = yield Turn("one")
        second = yield Turn(f"two after {first}")
        return f"{first} {second}"

    hooks = SimpleNamespace(clips=lambda doc, specific, shown: list(shown), asked=lambda doc, specific: None)
    conversations = Conversations(hooks, program)
    asked = []

    class Model:
        is_simple = True

        def __init__(self):
            self.task_dict = {"t": {"test": {3: {"id": "x", "video": "v"}}}}

        def generate_until(self, requests):
            [request] = requests
            asked.append(request.args[0])
            return [f"<think>hm</think>reply {len(asked)}"]

    doc_to_text = partial(conversations.doc_to_text, lmms_eval_specific_kwargs=None)
    visual = partial(conversations.doc_to_visual, lmms_eval_specific_kwargs=None)
    request = Instance(
        "generate_until_agentic",
        ("one", {**KWARGS, "max_agentic_steps": 9}, visual, doc_to_text, 3, "t", "test"),
        idx=0,
        metadata=WHERE,
    )
    [text] = inspect.unwrap(evaluator._run_generate_until_agentic)(Model(), [request])
    assert asked == ["one", "two after reply 1"], "the adapter's values 'text' and 'ends' are read from other places"
    [said] = transcripts(EveryTranscript().apply([[text]], None))
    assert said.answer == "reply 1 reply 2", "the transcript is no longer what is taken from the fourth value"


# ------------------------------------------------------------------------------------------------- filters and scoring


def test_a_filter_is_a_class_that_gets_all_repeats_of_each_request():
    requests = [Instance("generate_until", ("text", {}), idx=0, metadata=WHERE) for _ in range(2)]
    requests[0].resps.extend(["A", None])
    build_filter_ensemble("none", [[EveryAnswer, None]]).apply(requests, None)
    found = [request.filtered_resps["none"] for request in requests]
    assert found == [["A", NO_CONTENT], [NO_CONTENT]], (
        "EveryAnswer keeps repeats and marks what is absent: --repeats, no_answer"
    )


HANDED = {
    "generate_until": ([["A ", "B"]], ["A", "B"], "one text for each repeat, stripped"),
    "generate_until_agentic": (["[\"{}\"]"], ["[\"{}\"]"], "the one text that EveryTranscript has made of all repeats"),
}  # fmt: skip


@pytest.mark.parametrize("output_type", HANDED)
def test_what_process_results_receives(output_type):
    filtered, expected, use = HANDED[output_type]
    seen = []
    config = SimpleNamespace(process_results=lambda doc, results: seen.append((doc, results)) or {"m": 1})
    ConfigurableTask.process_results(SimpleNamespace(OUTPUT_TYPE=output_type, config=config), {"id": "x"}, filtered)
    assert seen == [({"id": "x"}, expected)], f"our hooks expect {use}"


def test_reasoning_is_left_to_the_pack():
    assert parse_reasoning_tags_config(cli_value='[["<think>", "</think>"]]', task_value="none") is None, (
        "our YAML files say reasoning_tags: none, so that answers are stripped in one place, the same way everywhere"
    )


@pytest.fixture
def logged_sample():
    request = Instance(
        "generate_until", ("the prompt", lambda doc: [], dict(KWARGS), 3, "t", "test"), 0, metadata=WHERE
    )
    request.resps.extend(["A", "B"])
    build_filter_ensemble("none", [[EveryAnswer, None]]).apply([request], None)
    task = SimpleNamespace(
        process_results=lambda doc, results: {"overall": {"id": "x", "score": 100.0}, "coverage": {"status": "scored"}},
        doc_to_target=lambda doc: "gold",
        config=SimpleNamespace(repeats=1),
    )
    done = evaluator._process_document_results(
        (3, {"id": "x"}, [request]), task=task, filter_key="none", reasoning_tags=None, log_samples=True
    )
    return done.logged_sample


def test_a_line_of_a_sample_log(logged_sample, tmp_path):
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.date_id, tracker.general_config_tracker.model_name_sanitized = "20260101", "model"
    tracker.save_results_samples("mt_video_bench", [logged_sample])
    [log] = tmp_path.rglob("*.jsonl")
    assert _LOG_NAME.search(log.name)[1] == "mt_video_bench", "`score` reads the task's name from the file's name"
    [(_, line)] = _lines(log)
    assert line["overall"] == {"id": "x", "score": 100.0}, "`score` finds an item as the value of a metric"
    assert line["doc_id"] == 3 and line["input"] == "the prompt", (
        "a --predict_only log is joined with the data by these"
    )
    assert line["filtered_resps"] == ["A", "B"], "a --predict_only log's answers are read from here"
    assert line["target"] == "gold" and "doc" not in line, (
        "the item carries what scoring needs, for docs are not logged"
    )


def test_standard_errors_pass_over_what_has_no_score():
    source = (SOURCES / "evaluator_utils.py").read_text("utf-8")
    assert "score_key" in source and "cluster_key" in source, "errors are clustered by video, over items with a score"


# ---------------------------------------------------------------------------------------------------------------- cache


class CountingModel:
    def __init__(self):
        self.asked = []

    def generate_until(self, requests):
        self.asked += [request.args[0] for request in requests]
        return [f"to {request.args[0]}" for request in requests]


def _answered(folder, requests, **metadata):
    """The model's requests that reach it through a response cache in a folder."""
    model, config = CountingModel(), {"task": "t", "metadata": metadata}
    cache = ResponseCache.create(str(folder), model="m", task_dict={"t": SimpleNamespace(dump_config=lambda: config)})
    outputs = cache.execute(model, "generate_until", requests)
    assert outputs == [f"to {request.args[0]}" for request in requests], "replies come in the order of the requests"
    cache.finalize(success=True)
    return model.asked


def _turn(text, idx=0, doc_id=3):
    return Instance("generate_until", (text, dict(KWARGS), len, doc_id, "t", "test"), idx, {**WHERE, "doc_id": doc_id})


def test_the_response_cache_keeps_apart_what_must_not_be_mixed(tmp_path):
    first = [_turn("a"), _turn("b", doc_id=4)]
    assert _answered(tmp_path, first, fingerprint="1") == ["a", "b"]
    assert _answered(tmp_path, first, fingerprint="1") == [], (
        "deterministic requests are not asked again: a resumed run"
    )
    assert _answered(tmp_path, [_turn("a", idx=1)], fingerprint="1") == ["a"], (
        "lock-step instances carry idx=turn for this"
    )
    assert _answered(tmp_path, first, fingerprint="2") == ["a", "b"], (
        "the fingerprint of videos, frames and data in our tasks' metadata must tell one run's answers from another's"
    )


def test_our_generation_settings_are_cached():
    for arguments in (("text", dict(KWARGS), len, 3, "t", "test"), ("text", len, dict(KWARGS), 3, "t", "test")):
        found = extract_gen_kwargs(Instance("generate_until", arguments, 0, WHERE))
        assert found == KWARGS and is_deterministic("generate_until", found), "--use_cache would ask everything again"


# ------------------------------------------------------------------------------------------------------------- backends


def _files(name: str) -> list[Path]:
    return [path for kind in ("chat", "simple") if (path := SOURCES / "models" / kind / f"{name}.py").is_file()]


def _texts(path: Path) -> set[str]:
    """The constant beginnings of all texts in a source."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            found.add(first.value)
    return found


EVERY_TEXT = {text for path in (SOURCES / "models").rglob("*.py") for text in _texts(path)}


@pytest.mark.parametrize("sentinel", [text for text in _SENTINELS if text not in (NO_CONTENT, FAILED)])
def test_a_failed_request_is_spelled_as_we_know_it(sentinel):
    assert any(text.startswith(sentinel) for text in EVERY_TEXT), (
        f"no backend writes {sentinel!r} any more: answers/failures.py must learn how failed requests are told now, or "
        "they are scored as answers"
    )


def test_a_video_that_was_not_loaded_is_told_as_we_know_it():
    source = (SOURCES / "models" / "simple" / "llava_vid.py").read_text("utf-8")
    assert 'res.append(f"Video {video_path} can not load, check the source")' in source, (
        "answers/failures.py knows this text as a failure of llava_vid"
    )
    assert is_failure("Video /a/b.mp4 can not load, check the source")


# A refusal of the provider's is the model's answer, and counts as one.
REFUSALS = ("[SAFETY_BLOCKED:",)


def test_no_backend_has_another_way_to_tell_a_failure():
    texts = {text.strip() for name in BACKENDS for path in _files(name) for text in _texts(path)}
    told = [
        text
        for text in texts
        if text.startswith("[") and any(word in text for word in ("FAIL", "ERROR", "EXCEED", "BLOCK"))
    ]
    assert told, "texts of failures are looked for in the wrong place"
    unknown = [text for text in told if not is_failure(text) and not text.startswith(REFUSALS)]
    assert not unknown, f"a backend answers {unknown} where a request failed: answers/failures.py would score it"


@pytest.mark.parametrize("name", [*BACKENDS, *ALIASES])
def test_every_backend_of_the_table_is_one_of_lmms_evals(name):
    resolved = MODEL_REGISTRY_V2.resolve(name)
    assert resolved.model_type in ("simple", "chat"), "plugin._task_type reads the kind of a backend from here"
    assert resolved.model_id == ALIASES.get(name, name), (
        f"media/backends.py knows {name} by another name than lmms-eval"
    )
