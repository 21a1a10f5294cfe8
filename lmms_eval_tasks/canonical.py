"""The canonical dataset: parquet per configuration, `videos/`, a manifest and a card, in one folder.

Layout of a prepared folder (``HOME/datasets/<benchmark>``)::

    manifest.json             what is in it: format, fingerprint, rows and questions per configuration, videos; on the
                              Hub also size and hash of each file
    README.md                 dataset card; its YAML tells `datasets.load_dataset` the configurations
    data/<config>.parquet     one file per configuration, split `test`
    videos/<name>.mp4         the videos, as links to the source unless copied

The configuration ``default`` is all the others in order. On the Hub (`hub`) it is the same, with plain files.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lmms_eval_tasks import __version__, hub, plugin, settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media.ahead import prefetch
from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling, frames_per_question
from lmms_eval_tasks.media.sources import Videos, probe, stem
from lmms_eval_tasks.releases import Reader, Release, videos_of
from lmms_eval_tasks.text import digest

FORMAT = 1
SPLIT = "test"
DEFAULT = "default"

# Seconds after which what a killed `prepare` left is removed; another one that is still at work is younger.
_ABANDONED = 24 * 3600


class _Config(BaseModel):
    """What a manifest says of a configuration."""

    model_config = ConfigDict(strict=True)
    rows: int
    questions: int
    videos_of_a_question: list[int]


class _Manifest(BaseModel):
    """What a manifest must hold, wherever it comes from; lists of files are `hub.files`' to validate."""

    model_config = ConfigDict(strict=True)
    fingerprint: str
    configs: dict[str, _Config]
    videos: dict[str, list[str]]
    broken: list[str]


@dataclass(frozen=True)
class Prepared:
    """A prepared dataset that is open for reading."""

    benchmark: str
    folder: Path
    manifest: Mapping[str, Any]
    videos_override: Path | None = None
    repo: hub.Repo | None = None

    @cached_property
    def videos(self) -> Videos:
        """The dataset's videos on disk: ``VIDEOS_<BENCHMARK>`` first, then its own folder unless it is on the Hub."""
        roots = [self.videos_override] if self.videos_override else []
        return Videos(roots, None if self.repo else self.folder / "videos")

    @cached_property
    def _remotes(self) -> list[hub.RemoteVideos]:
        """Where on the Hub videos are that are not on disk: with the dataset itself, or where it was prepared from."""
        found = [hub.RemoteVideos(self.repo, hub.files(self.manifest["files"], str(self.repo)))] if self.repo else []
        if "hub" in self.manifest:
            found.append(hub.origin(self.manifest["hub"], str(self.folder / hub.MANIFEST)))
        return found

    def remote(self, name: str) -> hub.Remote | None:
        """Where on the Hub a video is; None if it is not there."""
        return next((found for remote in self._remotes if (found := remote.find(name))), None)

    def video(self, name: str) -> Path | None:
        """The file of a video, downloaded if it is on the Hub alone; None if it is nowhere.

        Raises:
            PackError: It cannot be downloaded.
        """
        path = self.videos.find(name)
        if path is not None:
            return path
        remote = self.remote(name)
        return remote.fetch() if remote else None

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits over the rows: equal rows have equal fingerprints on every machine."""
        return str(self.manifest["fingerprint"])

    @property
    def configs(self) -> Mapping[str, Mapping[str, Any]]:
        """``{config: {"rows": …, "questions": …, "videos_of_a_question": […]}}``, without ``default``."""
        configs: Mapping[str, Mapping[str, Any]] = self.manifest["configs"]
        return configs

    def questions(self, config: str = DEFAULT) -> int:
        """How many evaluated questions a configuration holds."""
        return sum(self.configs[name]["questions"] for name in self._names(config))

    def _names(self, config: str) -> Iterable[str]:
        return self.configs if config == DEFAULT else {config} & set(self.configs)

    def videos_of_a_question(self, config: str = DEFAULT) -> list[int]:
        """The numbers of videos that a configuration's questions have, each once, in rising order."""
        numbers = (self.configs[name]["videos_of_a_question"] for name in self._names(config))
        return sorted({number for of in numbers for number in of})

    def video_names(self, config: str = DEFAULT) -> list[str]:
        """Names of the videos that a configuration's questions are about."""
        return [name for name, of in self.manifest["videos"].items() if config == DEFAULT or config in of]

    def missing_videos(self, config: str = DEFAULT) -> list[str]:
        """Names of the videos that are nowhere, or that `prepare` could not open and that still cannot be."""
        names = self.video_names(config)
        missing = {name for name in self.videos.missing(names) if not self.remote(name)}
        return [name for name in names if name in missing or (name in self.manifest["broken"] and self._broken(name))]

    def _broken(self, name: str) -> bool:
        path = self.videos.find(name)
        if path is None:
            return False
        try:
            probe(path)
        except PackError:
            return True
        return False

    def not_fetched(self, config: str = DEFAULT) -> list[str]:
        """Names of the videos that a run would have to download."""
        remotes = [(name, self.remote(name)) for name in self.videos.missing(self.video_names(config))]
        return [name for name, remote in remotes if remote and not remote.cached()]

    def rows(self, config: str = DEFAULT) -> Any:
        """The rows as a `datasets.Dataset`, read as lmms-eval reads them."""
        from datasets import load_dataset

        return load_dataset(str(self.folder), None if config == DEFAULT else config, split=SPLIT)


def locate(benchmark: str) -> Path:
    """Finds a benchmark's prepared folder: ``DATA_<BENCHMARK>``, a folder or a Hub id, else below ``HOME``.

    Args:
        benchmark: Name of the benchmark's room, such as ``"mt_video_bench"``.

    Returns:
        The folder, as an absolute path.

    Raises:
        PackError: There is none, and the text names the command that makes it; or the Hub does not give it.
    """
    config = settings.load()
    variable = f"{settings.PREFIX}DATA_{benchmark.upper()}"
    given = config.data(benchmark)
    if repo := _repo(benchmark):
        return hub.annotations(repo)
    folder = Path(given).expanduser() if given else config.root / "datasets" / benchmark
    if (folder / "manifest.json").is_file():
        return folder.absolute()
    command = f"lmms-eval-tasks prepare {benchmark} --source WHERE-THE-AUTHORS-FILES-ARE"
    if given:
        raise PackError(f"{variable}={given} is not a prepared dataset (no manifest.json in it). Make one: {command}")
    raise PackError(f"{benchmark} is not prepared (nothing in {folder}). Run: {command}\n"
                    f"  or set {variable} to a prepared folder, or to a dataset on the Hub (ORG/NAME)")  # fmt: skip


def opened(benchmark: str) -> Prepared:
    """Opens a benchmark's prepared dataset.

    Raises:
        PackError: There is none, or it was made by an incompatible version of the pack.
    """
    folder, repo = locate(benchmark), _repo(benchmark)
    pinned = repo and hub.Repo(repo.name, folder.name)
    changed = os.stat(folder / hub.MANIFEST).st_mtime_ns
    return _open(benchmark, folder, changed, settings.load().videos(benchmark), pinned)


def _repo(benchmark: str) -> hub.Repo | None:
    """The dataset on the Hub that ``DATA_<BENCHMARK>`` names, if it does."""
    return hub.parse(settings.load().data(benchmark) or "")


@lru_cache(maxsize=16)
def _open(benchmark: str, folder: Path, _changed: int, videos: Path | None, repo: hub.Repo | None) -> Prepared:
    again = f"Run `lmms-eval-tasks prepare {benchmark}` again"
    damaged = PackError(f"{folder / hub.MANIFEST} is damaged. {again}")
    try:
        manifest = json.loads((folder / hub.MANIFEST).read_text("utf-8"))
        found = manifest["benchmark"], manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged from None
    if found != (benchmark, FORMAT):
        raise PackError(
            f"{folder} holds {found[0]} in format {found[1]}; {benchmark} in format {FORMAT} is needed. {again}"
        )
    try:
        _Manifest.model_validate(manifest)
    except ValidationError:
        raise damaged from None
    if videos is not None and not videos.is_dir():
        raise PackError(f"{settings.PREFIX}VIDEOS_{benchmark.upper()}={videos} is not a folder")
    return Prepared(benchmark, folder, manifest, videos, repo)


def attributes(benchmark: str) -> Callable[[str], str]:
    """The module-level ``__getattr__`` of a task module: what its YAML needs when a task is loaded, not before.

    It serves ``dataset_path`` (the prepared folder) and ``fingerprint`` (of rows, videos and sampling settings, which
    the key of lmms-eval's response cache would not see otherwise).
    """

    def attribute(name: str) -> str:
        match name:
            case "dataset_path":
                return str(locate(benchmark))
            case "fingerprint":
                return _media_fingerprint(opened(benchmark))
        raise AttributeError(name)

    return attribute


def _media_fingerprint(prepared: Prepared) -> str:
    videos = [_identity(prepared, name) for name in prepared.video_names()]
    return digest([prepared.fingerprint, sampling(), sampling(several=True), videos])


def _identity(prepared: Prepared, name: str) -> list[Any] | None:
    """Tells a video from another of its name; the same before a video of the Hub is here and after."""
    path = prepared.videos.find(name)
    if path is not None:
        return [path.name, path.stat().st_size, path.stat().st_mtime_ns]
    remote = prepared.remote(name)
    return remote.identity if remote else None


def sampling(specific: Mapping[str, Any] | None = None, several: bool = False) -> dict[str, Any]:
    """How frames are sampled, JSON-able: for protocol cards and cache keys. ``clips`` false: the backend samples.

    Args:
        specific: The task's ``lmms_eval_specific_kwargs`` for the model, if any.
        several: Whether questions have several videos; ``frames`` is None where they share ``frames_per_question``.
    """
    config = settings.load()
    described = {"clips": config.clips, **Sampling.of(specific, config).describe()}
    if several:
        budget = frames_per_question(specific, config)
        described.update(frames_per_question=budget, frames=described["frames"] if budget is None else None)
    return described


# Videos of requests that were built and not yet run, in this rank's order, with what `clip` is told of them (kwargs by
# identity: all docs have the same ones); the first clip that is asked for starts making theirs in the background.
_coming: dict[tuple[str, str, int, int], Mapping[str, Any] | None] = {}


def coming(benchmark: str, name: str, specific: Mapping[str, Any] | None = None, videos: int = 1) -> None:
    """Announces that a video will be asked for; arguments as for `clip`."""
    _coming[benchmark, name, videos, id(specific)] = specific


def _make_coming() -> None:
    if not _coming:
        return
    announced = list(_coming.items())
    _coming.clear()
    config = settings.load()
    clips = [
        (benchmark, name, Sampling.of(specific, config, videos)) for (benchmark, name, videos, _), specific in announced
    ]
    jobs = [(partial(_video, benchmark, name), sampling) for benchmark, name, sampling in dict.fromkeys(clips)]
    prefetch(jobs, ranks=int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _video(benchmark: str, name: str) -> Path:
    """The file of a video, downloaded if need be.

    Raises:
        PackError: It is nowhere, or cannot be downloaded.
    """
    prepared = opened(benchmark)
    path = prepared.video(name)
    if path is None:
        raise PackError(
            f"{benchmark}: video {name!r} is not in {prepared.repo or prepared.folder / 'videos'}. Set "
            f"{settings.PREFIX}VIDEOS_{benchmark.upper()} to the folder that holds it"
        )
    return path


def clip(benchmark: str, name: str, specific: Mapping[str, Any] | None = None, videos: int = 1) -> str:
    """The file that a backend is handed for a video: a clip of exactly the sampled frames.

    Args:
        benchmark: Name of the benchmark's room.
        name: Name of the video in the dataset's rows.
        specific: The task's ``lmms_eval_specific_kwargs`` for the model, if any.
        videos: How many videos the question has, which share its frames.

    Returns:
        Path of an ``.mp4``.

    Raises:
        PackError: The video is nowhere, or cannot be downloaded or decoded.
        SystemExit: The same, where lmms-eval would go on after an error (see `plugin.ending`).
    """
    plugin.encode_every_picture()
    _make_coming()
    try:
        return str(sampled(_video(benchmark, name), Sampling.of(specific, settings.load(), videos)))
    except PackError as error:
        raise plugin.ending(error) from None


def write(
    benchmark: str,
    release: Release,
    reader: Reader,
    videos: Mapping[str, Path | None],
    broken: Iterable[str],
    copy_videos: bool = False,
) -> Path:
    """Writes a canonical dataset below ``HOME`` and puts it in the place of an older one in one step.

    Args:
        benchmark: Name of the benchmark's room.
        release: What was read; a configuration without rows is left out.
        reader: The room's `release` module.
        videos: ``{name: file}`` for every video of the rows, with None for one that was not found.
        broken: Names of videos that were found and cannot be opened.
        copy_videos: Copy the videos instead of linking to them.

    Returns:
        The folder that a reader sees, ``HOME/datasets/<benchmark>``.

    Raises:
        OSError: The disk refuses; what was there before stays.
    """
    rows = {config: of for config, of in release.rows.items() if of}
    place = settings.load().root / "datasets" / benchmark
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{benchmark}.", dir=place.parent))
    try:
        # mkdtemp's folders are for the owner alone; a dataset is for everyone on a shared HOME.
        folder.chmod(0o755)
        _write_into(folder, rows, reader.features())
        _place_videos(folder / "videos", videos, copy_videos)
        manifest = {
            "format": FORMAT,
            "benchmark": benchmark,
            "pack": __version__,
            "fingerprint": digest({config: list(map(_identifying, of)) for config, of in rows.items()}),
            "configs": {
                config: {
                    "rows": len(of),
                    "questions": sum(map(reader.questions, of)),
                    "videos_of_a_question": sorted({len(videos_of(row)) for row in of if reader.questions(row)}),
                }
                for config, of in rows.items()
            },
            "videos": _configs_of_videos(rows, videos),
            "broken": list(broken),
            "excluded": release.excluded,
        }
        if release.hub:
            manifest["hub"] = release.hub
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=True), "utf-8")
        (folder / "README.md").write_text(_card(benchmark, rows), "utf-8")
        _swap(folder, place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return place


def _write_into(folder: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]], features: Any) -> None:
    from datasets import Dataset
    from pyarrow import parquet

    (folder / "data").mkdir()
    for config, of in rows.items():
        table = Dataset.from_list(list(of), features=features).with_format("arrow")[:]
        parquet.write_table(table, folder / "data" / f"{config}.parquet")


def _identifying(row: Mapping[str, Any]) -> dict[str, Any]:
    """What of a row the fingerprint covers: all but what depends on the videos at hand."""
    return {key: value for key, value in row.items() if key != "seconds"}


def video_file(name: str, source: Path) -> str:
    """What a video's file is called below ``videos/``: by its name in the rows, with its own extension."""
    return f"{stem(name)}{source.suffix.lower()}"


def _place_videos(folder: Path, videos: Mapping[str, Path | None], copy: bool) -> None:
    folder.mkdir()
    placed: dict[Path, tuple[str, Path]] = {}
    for name, source in videos.items():
        if source is not None:
            target = folder / video_file(name, source)
            # Rows may call a video both `v` and `v.mp4`.
            other, first = placed.setdefault(target, (name, source))
            if first != source:
                raise PackError(f"{name!r} and {other!r} would be one file, and are {source} and {first}. Rename one")
            if other != name:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if copy:
                shutil.copyfile(source, target)
            else:
                target.symlink_to(source.resolve())


def _configs_of_videos(rows: Mapping[str, Iterable[Mapping[str, Any]]], videos: Iterable[str]) -> dict[str, list[str]]:
    used: dict[str, list[str]] = {name: [] for name in videos}
    for config, of in rows.items():
        for name in dict.fromkeys(name for row in of for name in videos_of(row)):
            used[name].append(config)
    return used


def _swap(folder: Path, place: Path) -> None:
    """Makes ``place`` a link to ``folder``: a rename, so that a reader sees the old dataset or the new one."""
    old = place.with_name(os.readlink(place)) if place.is_symlink() else None
    link = folder.with_name(f"{folder.name}.link")
    link.symlink_to(folder.name)
    try:
        os.replace(link, place)
    except BaseException:
        link.unlink()
        raise
    for path in place.parent.glob(f".{place.name}.*"):
        if path == old or (path != folder and _age(path) > _ABANDONED):
            path.unlink(missing_ok=True) if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)


def _age(path: Path) -> float:
    """Seconds since a path was made; 0 when another process has just removed it."""
    try:
        return time.time() - path.lstat().st_mtime
    except FileNotFoundError:
        return 0


def _card(benchmark: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    files = {config: [f"data/{config}.parquet"] for config in rows}
    files = {DEFAULT: [path for paths in files.values() for path in paths], **files}
    # `datasets` finds its cached copy of a local folder by the folder's last name and this block alone: without the
    # contents in it, it would serve the rows of an earlier dataset.
    contents = f"contents {digest({config: list(of) for config, of in rows.items()})}"
    entries = [
        {"config_name": config, "description": contents, "data_files": [{"split": SPLIT, "path": paths}]}
        for config, paths in files.items()
    ]
    return (
        f"---\nconfigs: {json.dumps(entries)}\n---\n\n# {benchmark}, prepared\n\n"
        f"Written by `lmms-eval-tasks prepare {benchmark}`; read by the tasks of the same name.\n"
    )
