"""`prepare`: the authors' release -> a canonical dataset that the tasks load."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tqdm import tqdm

from lmms_eval_tasks import canonical, hub, settings
from lmms_eval_tasks.benchmarks import room, tasks
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.media.ahead import make_all, shard
from lmms_eval_tasks.media.clips import clip_of
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.media.sources import Videos, probe
from lmms_eval_tasks.releases import Reader, videos_of

# Videos that are downloaded at a time.
_DOWNLOADS = 8


@dataclass(frozen=True)
class Summary:
    """What `prepare` made.

    Attributes:
        folder: The prepared folder.
        table: Rows of ``(configuration, rows, evaluated questions, videos)``.
        excluded: ``{"id", "reason"}`` of what cannot be scored.
        missing: Names of videos that were not found.
        broken: Videos that were found and cannot be opened, with the reason.
        notes: What else is odd.
    """

    folder: Path
    table: list[tuple[str, int, int, int]]
    excluded: list[dict[str, str]]
    missing: list[str]
    broken: list[str]
    notes: list[str]

    def __str__(self) -> str:
        """The summary as text."""
        lines = [f"{'':<24}{'rows':>8}{'questions':>12}{'videos':>8}"]
        lines += [f"{name:<24}{rows:>8}{questions:>12}{videos:>8}" for name, rows, questions, videos in self.table]
        excluded = [f"{entry['id']}: {entry['reason']}" for entry in self.excluded]
        for heading, of in (
            (f"{len(excluded)} excluded, which count neither as right nor as wrong", excluded),
            (f"{len(self.missing)} videos missing", self.missing),
            (f"{len(self.broken)} videos cannot be opened", self.broken),
            ("Note", self.notes),
        ):
            if of:
                lines.append(listing(heading, of, limit=50))
        return "\n".join([*lines, f"Prepared in {self.folder}"])


def prepare(benchmark: str, source: Path | str, videos: Path | None = None, copy_videos: bool = False) -> Summary:
    """Converts a release and writes it below ``HOME``, in the place of an earlier one.

    Args:
        benchmark: Name of the benchmark's room.
        source: Folder with the authors' files, or their dataset on the Hub, ``ORG/NAME[@REVISION]``: of it only the
            annotations are downloaded, and its videos when they are asked for.
        videos: Folder with the videos; a source that is a folder is searched too.
        copy_videos: Copy the videos instead of linking to them.

    Raises:
        PackError: The release cannot be read or downloaded, or the disk cannot be written.
    """
    reader = cast(Reader, room(benchmark, "release"))
    repo = hub.parse(str(source))
    folder, remote = hub.release(repo) if repo else (Path(source), None)
    release = reader.read(folder)
    if videos is not None and not videos.expanduser().is_dir():
        raise PackError(f"--videos {videos} is not a folder")
    # A reader that finds videos itself has looked below the source: what it did not find there is not to be guessed.
    roots = (videos, settings.load().videos(benchmark), None if remote or release.videos else folder)
    rows = [row for of in release.rows.values() for row in of]
    if not sum(map(reader.questions, rows)):
        why = [f"{entry['id']}: {entry['reason']}" for entry in release.excluded] + release.notes
        raise PackError(listing(f"{source} holds no question that can be evaluated; nothing was written", why))
    videos_below = Videos([root.expanduser() for root in roots if root is not None])
    names = dict.fromkeys(name for row in rows for name in videos_of(row))
    found = {name: release.videos.get(name) or videos_below.find(name) for name in names}
    seconds, broken = _durations(found)
    for row in rows:
        row["seconds"] = _together(seconds.get(name) for name in videos_of(row))
    release.notes += _no_longer(benchmark, release.rows)
    listed = {name: there for name, path in found.items() if path is None and remote and (there := remote.find(name))}
    if remote and listed:
        files = {there.path: there.file for there in listed.values()}
        release.hub = hub.Origin(repo=remote.repo.name, revision=remote.repo.revision, files=files).model_dump()
    try:
        folder = canonical.write(benchmark, release, reader, found, broken, copy_videos)
    except OSError as error:
        raise PackError(f"{settings.load().root} cannot be written ({error}). Free space, or set "
                        f"{settings.PREFIX}HOME to another folder") from None  # fmt: skip
    return Summary(
        folder=folder,
        table=_table(release.rows, reader.questions),
        excluded=release.excluded,
        missing=[name for name, path in found.items() if path is None and name not in listed],
        broken=list(broken.values()),
        notes=release.notes,
    )


def make_clips(benchmark: str, model: str | None = None, workers: int | None = None, part: str = "1/1") -> list[str]:
    """Makes the clips of all videos of a prepared benchmark ahead of a run.

    Args:
        benchmark: Name of the benchmark's room.
        model: Name of the backend, where it has a sampling of its own.
        workers: How many clips are made at a time; None: by the number of cores.
        part: ``"I/N"``: the I-th of N shares of the work.

    Returns:
        What failed, in words.

    Raises:
        PackError: The benchmark is not prepared, or ``part`` is malformed.
    """
    prepared, config = canonical.opened(benchmark), settings.load()
    specifics = [task.specific(model) for task in tasks().values() if task.benchmark == benchmark]
    asked = {(name, len(names)) for row in prepared.rows() for names in [videos_of(row)] for name in names}
    every = [(name, Sampling.of(of, config, number)) for name, number in sorted(asked) for of in specifics]
    mine = shard(every, part)
    paths, absent = _bring(prepared, [name for name, _ in mine])
    jobs = list(dict.fromkeys((paths[name], sampling) for name, sampling in mine if name in paths))
    failures = make_all(jobs, workers)
    gone = sum(not clip_of(*job, config.root).exists() for job in jobs) - len(failures)
    if gone > 0:
        failures.append(f"{gone} clips had to make room for others: {settings.PREFIX}CLIP_CACHE_GB="
                        f"{config.clip_cache_gb:g} is too small for all")  # fmt: skip
    return absent + failures


def fetch_videos(benchmark: str, limit: int | None = None) -> list[str]:
    """Downloads the videos that are on the Hub alone, for runs without a network.

    Args:
        benchmark: Name of the benchmark's room.
        limit: Only those of the first rows with a question, so many of each configuration: enough for a run with the
            same ``--limit``.

    Returns:
        What failed, in words.

    Raises:
        PackError: The benchmark is not prepared.
    """
    prepared, questions = canonical.opened(benchmark), cast(Reader, room(benchmark, "release")).questions
    rows = [row for config in prepared.configs for row in list(filter(questions, prepared.rows(config)))[:limit]]
    names = list(dict.fromkeys(name for row in rows for name in videos_of(row)))
    nowhere = [f"{name} is neither in a folder nor on the Hub" for name in prepared.missing_videos() if name in names]
    _, failures = _bring(prepared, names)
    return nowhere + failures


def _bring(prepared: canonical.Prepared, names: Iterable[str]) -> tuple[dict[str, Path], list[str]]:
    """The files of videos, downloaded several at a time, without those that are nowhere; and what failed."""
    hub.without_bars()
    paths: dict[str, Path] = {}
    failures = []
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        waiting = {pool.submit(prepared.video, name): name for name in dict.fromkeys(names)}
        try:
            for done in tqdm(as_completed(waiting), "Videos", total=len(waiting), leave=False):
                if isinstance(error := done.exception(), PackError):
                    failures.append(str(error))
                elif path := done.result():
                    paths[waiting[done]] = path
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return paths, failures


def _together(seconds: Iterable[float | None]) -> float | None:
    known = list(seconds)
    return None if None in known else sum(filter(None, known))


def _no_longer(benchmark: str, rows: Mapping[str, Any]) -> list[str]:
    """What an earlier dataset of the benchmark held that this one does not."""
    try:
        gone = [config for config in canonical.opened(benchmark).configs if not rows.get(config)]
    except PackError:
        return []
    if not gone:
        return []
    return [f"the earlier dataset also held {', '.join(gone)}: for all of them, give one --source that holds all"]


def _durations(videos: Mapping[str, Path | None]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Seconds of each video that can be opened, and what is wrong with each of the others."""
    seconds: dict[str, float | None] = {}
    broken: dict[str, str] = {}
    found = {name: path for name, path in videos.items() if path is not None}
    for name, path in tqdm(found.items(), "Videos", leave=False):
        try:
            seconds[name] = probe(path).seconds
        except PackError as error:
            broken[name] = str(error)
    return seconds, broken


def _table(rows: Mapping[str, list[dict[str, Any]]], questions: Any) -> list[tuple[str, int, int, int]]:
    every = [row for of in rows.values() for row in of]
    return [
        (name, len(of), sum(map(questions, of)), len({video for row in of for video in videos_of(row)}))
        for name, of in (*rows.items(), ("all", every))
    ]
