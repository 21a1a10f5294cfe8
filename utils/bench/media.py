"""Asking 43 questions about one video: decoding it each time, or once.

The source is 1280x720 H.264, 150 s, 250 frames between key frames, from real footage. A question reads 128 frames as
lmms-eval's own ``load_video_decord`` does (decord, two threads, one batch, copied to numpy), in all three cases:

- stock: from the source, for each question (a few are measured, before, between and after the others);
- ours: from the clip, which the first question makes;
- floor: one read of the source, then 43 of the clip.
"""

import itertools
import os
import tempfile
from fractions import Fraction
from pathlib import Path

import av
import decord
import numpy as np

from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling, fitted, frame_indices
from lmms_eval_tasks.settings import PREFIX
from utils.bench._measure import Cost, cost
from utils.sample_release.clips import footage

QUESTIONS = 43
SECONDS = 150
FPS = 25
GOP = 250
SIZE = (1280, 720)


def run() -> dict[str, float]:
    """Measures and prints; returns the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source.mp4"
        os.environ[f"{PREFIX}HOME"] = scratch
        cost(make_source, source)
        stock = [cost(read, source)]
        ours = cost(ask, source)
        stock.append(cost(read, source))
        floor = cost(ask_floor, source, ours.result)
        stock.append(cost(read, source))
        quality = cost(psnr, source, ours.result).result
        megabytes = Path(ours.result).stat().st_size / 1e6
    seconds, cpu = (sum(values) / len(stock) * QUESTIONS for values in list(zip(*stock, strict=True))[:2])
    rows = {
        f"stock ({QUESTIONS} x {seconds / QUESTIONS:.2f} s)": Cost(seconds, cpu, max(c.peak_mib for c in stock), None),
        "ours": ours,
        "floor": floor,
    }
    for name, row in rows.items():
        print(f"{name:24} {row.seconds:8.1f} s {row.cpu:8.1f} CPU s {row.peak_mib:7.0f} MiB at most")
    figures = {
        "stock_over_ours": seconds / ours.seconds,
        "ours_over_floor": ours.seconds / floor.seconds,
        "peak_mib": ours.peak_mib,
        "stock_over_ours_cpu": cpu / ours.cpu,
        "ours_over_floor_cpu": ours.cpu / floor.cpu,
        "stock_seconds": seconds,
        "ours_seconds": ours.seconds,
        "floor_seconds": floor.seconds,
        "clip_mb": megabytes,
        "psnr_mean_db": quality[0],
        "psnr_worst_db": quality[1],
    }
    for name, value in figures.items():
        print(f"{name:24} {value:8.2f}")
    return {name: round(value, 3) for name, value in figures.items()}


def make_source(path: Path) -> None:
    """Encodes one stretch of key frame to key frame and repeats its packets."""
    with av.open(str(footage("bigbuckbunny.mp4"))) as container:
        shots = [frame.reformat(*SIZE, "yuv420p") for frame in container.decode(video=0)]
    with av.open(str(path), "w") as container:
        options = {"preset": "medium", "crf": "23", "g": str(GOP), "keyint_min": str(GOP), "sc_threshold": "0"}
        stream = container.add_stream("libx264", rate=FPS, options=options)
        (stream.width, stream.height), stream.pix_fmt = SIZE, "yuv420p"
        packets = []
        for k, shot in enumerate(itertools.islice(itertools.cycle(shots), GOP)):
            shot.pts, shot.time_base, shot.pict_type = k, Fraction(1, FPS), 0
            packets += [(bytes(p), p.pts, p.dts, p.is_keyframe) for p in stream.encode(shot)]
        packets += [(bytes(p), p.pts, p.dts, p.is_keyframe) for p in stream.encode(None)]
        for shift in range(0, SECONDS * FPS, GOP):
            for data, pts, dts, key in packets:
                packet = av.Packet(data)
                packet.pts, packet.dts, packet.stream = pts + shift, dts + shift, stream
                packet.time_base, packet.is_keyframe = Fraction(1, FPS), key
                container.mux(packet)


def read(path: Path) -> tuple[int, ...]:
    """Reads 128 frames of a video, evenly spaced; returns the shape."""
    video = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=2)
    indices = np.linspace(0, len(video) - 1, 128, dtype=int).tolist()
    frames: np.ndarray = video.get_batch(indices).asnumpy()
    return frames.shape


def ask(source: Path) -> Path:
    """Reads the clip for every question; returns it."""
    for _ in range(QUESTIONS):
        read(clip := sampled(source, Sampling()))
    return clip


def ask_floor(source: Path, clip: Path) -> None:
    """Reads the source once and the clip for every question."""
    read(source)
    for _ in range(QUESTIONS):
        read(clip)


def psnr(source: Path, clip: Path) -> tuple[float, float]:
    """Mean and worst PSNR in dB of a clip, in RGB, against the sampled frames resized by the same kernel."""
    indices = set(frame_indices(SECONDS * FPS, 128))
    size = fitted(*SIZE, Sampling())
    with av.open(str(source)) as one, av.open(str(clip)) as other:
        wanted = (frame for k, frame in enumerate(one.decode(video=0)) if k in indices)
        pairs = (
            (frame.reformat(*size, "rgb24", interpolation="BICUBIC").to_ndarray(), copy.to_ndarray(format="rgb24"))
            for frame, copy in zip(wanted, other.decode(video=0), strict=True)
        )
        errors = [np.mean((frame.astype(float) - copy) ** 2) for frame, copy in pairs]
    values = 10 * np.log10(255**2 / np.array(errors))
    return float(values.mean()), float(values.min())
