"""What comes from outside runs nothing, and writes nowhere but where it belongs."""

import ast
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from huggingface_hub.hf_api import RepoFile

from lmms_eval_tasks import benchmarks, canonical, hub, settings
from lmms_eval_tasks.archives import unpacked
from lmms_eval_tasks.benchmarks import room
from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media.clips import clip_of
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.mt_video_bench import checklist
from lmms_eval_tasks.results import records
from tests.test_archives import pack

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("lmms_eval_tasks", "hf_upload") for path in (ROOT / folder).rglob("*.py"))

# What runs text or bytes as code, or a command through a shell.
BANNED_CALLS = {
    *(
        "eval",
        "exec",
        "compile",
        "__import__",
        "os.system",
        "os.popen",
        "os.execv",
        "os.execvp",
        "subprocess.getoutput",
    ),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads", "shelve.open", "dill.load"),
    *("torch.load", "numpy.load", "np.load", "joblib.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all"),
    *("pandas.read_pickle", "pd.read_pickle", "shutil.unpack_archive", "tarfile.open"),
}
BANNED_IMPORTS = {"pickle", "marshal", "shelve", "dill", "joblib", "torch", "tarfile", "telnetlib", "ftplib"}
BANNED_NAMES = {"extractall", "unsafe_load", "full_load", "trust_remote_code", "allow_pickle"}


def _problems(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [of.name for of in node.names]
            found += [f"line {node.lineno}: imports {of}" for of in modules if of.partition(".")[0] in BANNED_IMPORTS]
        elif isinstance(node, ast.Attribute) and node.attr in BANNED_NAMES:
            found.append(f"line {node.lineno}: uses {node.attr}")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {of.arg: of.value for of in node.keywords}
            shell = given.get("shell")
            if name in BANNED_CALLS:
                found.append(f"line {node.lineno}: calls {name}")
            if name == "yaml.load" and "_Loader" not in [ast.unparse(of) for of in (*node.args[1:], *given.values())]:
                found.append(f"line {node.lineno}: yaml.load without a safe loader")
            if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
                found.append(f"line {node.lineno}: passes shell={ast.unparse(shell)}")
            found += [f"line {node.lineno}: passes {of}" for of in given if of in BANNED_NAMES]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_runs_what_it_reads(path):
    assert _problems(path.read_text("utf-8")) == []


BAD = [
    *("import pickle", "from torch import load", "eval('1')", "exec(text)", "os.system('ls')", "yaml.load(text)"),
    *("subprocess.run('ls', shell=True)", "subprocess.run('ls', shell=flag)", "yaml.load(text, yaml.Loader)"),
    *("torch.load(path)", "archive.extractall(place)", "load_dataset(x, trust_remote_code=True)"),
]


@pytest.mark.parametrize("source", BAD)
def test_the_search_finds_what_it_is_for(source):
    assert len(_problems(source)) == 1


def test_our_yaml_files_are_read_by_a_safe_loader():
    assert issubclass(benchmarks._Loader, (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    with pytest.raises(yaml.YAMLError):
        yaml.load("!!python/object/apply:os.getcwd []", benchmarks._Loader)


# --------------------------------------------------------------------------------------------------- nothing leads out

OUT = ["../../evil", "/tmp/evil", "a/../../../evil", "..", "C:\\evil", "a\\..\\evil", "a/\x00", "", "a//b", "a\n"]


def _inside(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("name", OUT, ids=repr)
def test_no_video_name_of_a_release_leads_out(name, tmp_path):
    question = {"question_type": "plotQA", "question": "q", "candidates": ["a", "b"], "answer": "a"}
    rounds = {"Round 1": {"User": "q", "Assistant": "a"}}
    clarity = {"id": 1, "query": "<video><video>", "options": [1, 2], "answer": "1, 2"}
    film = {"video_id": name, "question": "q", "options": ["a", "b"], "answer": "A", "sub_questions": [["q", "a"]]}
    releases = {
        "mt_video_bench": ("mtqa/memory_recall.json", {name: [{"event_index": 1, "mtqa": rounds}]}),
        "mvpbench": ("clarity/clarity.jsonl", {**clarity, "video_options": [name, "b.mp4"]}),
        "mlvu": ("1_plotQA.json", [{**question, "video": name}]),
        "scvbench": ("scvbench.jsonl", film),
    }
    for benchmark, (path, content) in releases.items():
        file = tmp_path / benchmark / path
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(content))
        reader = room(benchmark, "release")
        try:
            rows = [row for of in reader.read(tmp_path / benchmark).rows.values() for row in of]
        except PackError as error:
            assert "video" in str(error), benchmark
        else:
            assert not any(map(reader.questions, rows)), benchmark


def test_videos_are_placed_by_their_names_below_the_dataset_alone(home, tmp_path):
    source = tmp_path / "v.mp4"
    source.write_bytes(b"x")
    names = ["v", "sub/v.mp4", ".hidden", "...", "ü.mp4", "a b", "-rf", "~", "$HOME", "%2e%2e", "v.tar.gz"]
    canonical._place_videos(home / "videos", dict.fromkeys(names, source), copy=True)
    assert _inside(home) == {"videos", "videos/sub"} | {
        f"videos/{canonical.video_file(name, source)}" for name in names
    }


@pytest.mark.parametrize("copy", [False, True])
def test_two_names_of_one_video_share_its_file_and_two_videos_never_do(tmp_path, copy):
    first, other = tmp_path / "v.mp4", tmp_path / "other.mp4"
    first.write_bytes(b"first")
    other.write_bytes(b"other")
    canonical._place_videos(tmp_path / "one", {"v": first, "v.mp4": first}, copy)
    assert [path.read_bytes() for path in (tmp_path / "one").iterdir()] == [b"first"]
    with pytest.raises(PackError, match=r"'v\.mp4'.*v\.mp4"):
        canonical._place_videos(tmp_path / "two", {"v": first, "v.mp4": other}, copy)


@pytest.mark.parametrize("path", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "a\\..\\evil.json"])
def test_no_path_of_a_repository_leads_out(path, monkeypatch):
    class Api:
        def dataset_info(self, name, revision):
            return SimpleNamespace(sha="0" * 40)

        def list_repo_tree(self, *_, **__):
            return [RepoFile(path=name, size=1, oid="0" * 40) for name in ("fine.json", path)]

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr(hub, "_download", lambda *_: pytest.fail("it was asked for"))
    with pytest.raises(PackError, match="paths in it lead out of its folder"):
        hub.release(hub.Repo("org/name"))


def test_a_manifest_of_the_hub_is_refused_before_anything_in_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / hub.MANIFEST).write_text(json.dumps({"files": {"data/../../../evil.parquet": {"size": 1}}}))
    monkeypatch.setattr(
        hub, "_download", lambda repo, path: tmp_path / path if path == hub.MANIFEST else pytest.fail(path)
    )
    with pytest.raises(PackError, match="lead out of its folder"):
        hub.annotations(hub.Repo("org/hostile"))


@pytest.mark.parametrize("task", ["../../evil", "/tmp/evil", "a/b", "..", "a\nb"])
def test_no_task_name_leads_a_run_record_out(task, home, logged):
    before = _inside(home.parent)
    records.append({"id": "x", "task": task, "answers": ["a"], "status": "unjudged"})
    records.reply(task, "x", 0, "prompt", "reply")
    records._files.clear()
    new = _inside(home.parent) - before
    assert all(path.startswith((f"{home.name}/runs", f"{home.name}/replies")) for path in new)


@pytest.mark.parametrize(
    "source", ["/videos/..mp4", "/videos/a b;rm -rf.mp4", "/videos/\udcff.mp4", "/videos/" + "x" * 250]
)
def test_a_clip_lies_in_home_whatever_its_source_is_called(source, home, tmp_path):
    root = settings.load().root
    file = tmp_path / Path(source).name
    try:
        file.write_bytes(b"x")
    except OSError:
        pytest.skip("this disk takes no such name")
    clip = clip_of(file, Sampling.of(None, settings.load()), root)
    assert clip.resolve().is_relative_to(root.resolve()) and ".." not in clip.parts


@pytest.mark.parametrize("name", ["..zip", "...zip", "-x.zip", "a b.zip", "\n.zip"])
def test_an_archive_is_unpacked_below_its_place_whatever_it_is_called(name, tmp_path):
    archive = pack(tmp_path / name, {"a.txt": b"1"})
    folder = unpacked(archive, tmp_path / "deep" / "place")
    assert folder.resolve().parent == (tmp_path / "deep" / "place").resolve() and (folder / "a.txt").is_file()


@pytest.mark.parametrize("change", [{"ability": "../../evil"}, {"ability": "/tmp/evil"}, {"video": "../v.mp4"}])
def test_no_dialogue_of_ones_own_leads_the_checklists_out(change, tmp_path, judge_server):
    dialogue = {"video": "v.mp4", "turns": [{"question": "q", "answer": "a"}], **change}
    (tmp_path / "dialogues.jsonl").write_text(json.dumps(dialogue))
    with pytest.raises(PackError):
        checklist.write(tmp_path / "dialogues.jsonl", tmp_path / "deep" / "out")
    assert _inside(tmp_path) == {"dialogues.jsonl"}


def test_a_card_holds_no_markup_of_a_release(tmp_path, home):
    """The card's YAML names files by configuration: a configuration is a name of ours, and a value is quoted."""
    rows = {"a\n---\nb: !!python/name:os.system": [{"id": "x"}]}
    text = canonical._card("mlvu", rows)
    head = yaml.safe_load(text.split("\n---\n")[0].removeprefix("---\n"))
    assert list(head) == ["configs"] and [of["config_name"] for of in head["configs"]] == ["default", *rows]


def test_a_file_name_that_is_no_text_is_shown_with_escapes_and_stops_nothing(tmp_path, capsys):
    rounds = {f"Round {number}": {"User": "q", "Assistant": "a"} for number in (1, 2)}
    checks = [{"round index": 2, "Q1": "Is it?", "A1": "Yes"}]
    files = {
        "memory_recall.json": {"v.mp4": [{"event_index": 1, "mtqa": rounds}]},
        "memory_recall_CheckList.json": {"v.mp4": {"1": checks}, "other.mp4": {}},
    }
    folder = tmp_path / "\udcff"
    try:
        folder.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("this disk takes no such name")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    main(["prepare", "mt_video_bench", "--source", str(tmp_path)])
    assert "\\udcff/memory_recall_CheckList.json: 'other.mp4' has no dialogues" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------- dependencies


def _requirements() -> list[str]:
    import configparser

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    return setup["options"]["install_requires"].split()


@pytest.mark.parametrize("requirement", _requirements())
def test_every_dependency_is_bounded_and_the_tested_version_is_within(requirement):
    from importlib.metadata import version

    from packaging.requirements import Requirement

    parsed = Requirement(requirement)
    assert {of.operator for of in parsed.specifier} >= {">="}, f"{requirement}: from which version on does it work?"
    assert parsed.specifier.contains(version(parsed.name)), f"{requirement}: {version(parsed.name)} is what is tested"
