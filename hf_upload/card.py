"""The dataset card, and what it says of each benchmark."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pyarrow import parquet

from lmms_eval_tasks.canonical import Prepared
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.settings import PREFIX
from lmms_eval_tasks.text import fill


@dataclass(frozen=True)
class About:
    """What is known of a benchmark's origin and terms.

    Attributes:
        paper: The paper's title.
        page: The authors' repository; empty where the paper names none.
        license: The Hub's identifier of the annotations' licence.
        terms: What the authors say of it.
        videos: Where the videos come from, and whose they are.
    """

    paper: str
    page: str
    license: str
    terms: str
    videos: str


_UNKNOWN = "The paper states no licence: see the authors' repository."
_OWNERS = "They remain their owners', under the terms of the places they come from. Use them for research alone."

ABOUT = {
    "mt_video_bench": About(
        paper="MT-Video-Bench: A Holistic Video Understanding Benchmark for Evaluating Multimodal LLMs in Multi-Turn "
        "Dialogues",
        page="https://github.com/NJU-LINK/MT-Video-Bench",
        license="unknown",
        terms=_UNKNOWN,
        videos=f"The authors collected them from online platforms such as YouTube (paper, section 3). {_OWNERS}",
    ),
    "mvpbench": About(
        paper="MVPBench: A Multi-Video Perception Evaluation Benchmark for Multi-Modal Video Understanding",
        page="https://github.com/MVPBench/MVPBench",
        license="other",
        terms="A research preview for non-commercial use only; derived work must cite MVPBench and name all original "
        "sources of data; the datasets in it keep their licences (paper, section X).",
        videos=f"Clips of open datasets and of sources such as Pexels and YouTube (paper, section X). {_OWNERS}",
    ),
    "mlvu": About(
        paper="MLVU: Benchmarking Multi-task Long Video Understanding",
        page="https://github.com/JUNJIE99/MLVU",
        license="unknown",
        terms=_UNKNOWN,
        videos="Films and documentaries of Movie101 and MovieChat, videos of MineDojo, UCF-Crime and Ego4D, and others "
        f"that the authors collected (paper, appendix). {_OWNERS}",
    ),
    "scvbench": About(
        paper="SCVBench: A Benchmark with Multi-turn Dialogues for Story-Centric Video Understanding",
        page="",
        license="unknown",
        terms=_UNKNOWN,
        videos=f"Amateur films on YouTube (paper, section 3). {_OWNERS}",
    ),
}

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))

_TEXT = """\
# {title}

The benchmark of *{paper}*{page}, converted and validated for
[lmms-eval](https://github.com/EvolvingLMMs-Lab/lmms-eval) by `lmms-eval-tasks`. All credit is the authors':
cite their paper.

## Run

    pip install lmms-eval-tasks
    export {prefix}DATA_{variable}={repo}
    lmms-eval --model qwen3_vl --model_args pretrained=Qwen/Qwen3-VL-8B-Instruct,max_num_frames=128 \\
        --tasks {task} --output_path logs --log_samples

Nothing else is needed: annotations are loaded at the start, and a video is downloaded when it is first asked for. Pin a
version with `{repo}@VERSION`.{where}

## What is in it

{contents}

Each configuration is one file `data/<configuration>.parquet`, split `test`; `default` is all of them. Rows have
the columns

{schema}

`manifest.json` names each file's size and SHA-256. {excluded}

## Terms

**Annotations.** {terms}

**Videos.** {videos}
"""


def about(benchmark: str) -> About:
    """What is known of a benchmark.

    Raises:
        PackError: Nothing is.
    """
    if benchmark not in ABOUT:
        raise PackError(f"{benchmark} has no entry in ABOUT in hf_upload/card.py: add its source, licence and terms")
    return ABOUT[benchmark]


def card(prepared: Prepared, repo: str, videos: Mapping[str, int]) -> str:
    """The text of a published dataset's ``README.md``.

    Args:
        prepared: The dataset.
        repo: Where it is published, ``ORG/NAME``.
        videos: ``{path: bytes}`` of the videos that are published with it.
    """
    known, questions = about(prepared.benchmark), prepared.questions()
    front = {
        "pretty_name": prepared.benchmark,
        "license": known.license,
        "task_categories": ["video-text-to-text"],
        "tags": ["lmms-eval", "benchmark", "video"],
        "size_categories": [next((name for below, name in _SIZES if questions < below), "n>100K")],
        # What `prepare` wrote stays as it is: the cache of `datasets` tells datasets apart by it.
        "configs": _front(prepared.folder)["configs"],
    }
    excluded = len(prepared.manifest["excluded"])
    text = fill(
        _TEXT,
        title=known.paper.partition(":")[0],
        paper=known.paper,
        page=f" ([authors' repository]({known.page}))" if known.page else "",
        prefix=PREFIX,
        variable=prepared.benchmark.upper(),
        task=prepared.benchmark,
        repo=repo,
        where=_where(prepared, videos),
        contents=_contents(prepared, videos),
        schema=_schema(prepared.folder),
        excluded=f"It also lists {excluded} questions that cannot be scored, with the reason." if excluded else "",
        terms=known.terms,
        videos=known.videos,
    )
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n\n{text}"


def _front(folder: Path) -> dict[str, object]:
    front: dict[str, object] = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---")[1])
    return front


def _where(prepared: Prepared, videos: Mapping[str, int]) -> str:
    if videos:
        return ""
    if origin := prepared.manifest.get("hub"):
        return f"\nThe videos are those of [{origin['repo']}](https://huggingface.co/datasets/{origin['repo']})."
    return (
        "\n\n**The videos are not in this repository.** Get them from the authors' repository, and set\n"
        f"`{PREFIX}VIDEOS_{prepared.benchmark.upper()}` to the folder that holds them."
    )


def _contents(prepared: Prepared, videos: Mapping[str, int]) -> str:
    rows = ["| configuration | rows | questions | videos |", "| --- | ---: | ---: | ---: |"]
    for name, config in prepared.configs.items():
        rows.append(f"| `{name}` | {config['rows']} | {config['questions']} | {len(prepared.video_names(name))} |")
    total = sum(config["rows"] for config in prepared.configs.values())
    rows.append(f"| `default` | {total} | {prepared.questions()} | {len(prepared.video_names())} |")
    return "\n".join([*rows, "", f"`videos/` holds {len(videos)} files, {size(sum(videos.values()))}."])


def _schema(folder: Path) -> str:
    fields = {field.name: field.type for path in sorted(folder.glob("data/*")) for field in parquet.read_schema(path)}
    rows = [f"| `{name}` | `{kind}` |" for name, kind in fields.items()]
    return "\n".join(["| column | type |", "| --- | --- |", *rows])


def size(number: int) -> str:
    """Bytes as a reader wants them."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    power = min(len(str(int(number))) - 1, 12) // 3
    return f"{number / 1000**power:.3g} {units[power]}"
