"""What a clip holds, for healthy and for hostile sources; how it is kept."""

import os
import shutil
import sys
from fractions import Fraction

import av
import decord
import numpy as np
import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import clips, shelf
from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling, frame_indices
from lmms_eval_tasks.media.sources import probe
from lmms_eval_tasks.settings import PREFIX
from tests.media import films
from utils.sample_release.clips import footage

BENT = 0.04
"""Seconds by which index over rate may be off: one frame of a source of 25 a second, as indices are truncated."""


def expected(total, frames=128, fps=25.0):
    """(numbers, seconds) that a clip of an even source shows."""
    if total >= frames:
        indices = frame_indices(total, frames)
        return indices, [index / fps for index in indices]
    places = [Fraction(k * (total - 1), frames - 1) for k in range(frames)]
    return [int(place) for place in places], [float(place) / fps for place in places]


def check(clip, numbers, seconds):
    """The clip shows these frames at these seconds, whoever reads it."""
    for name, read in films.READERS.items():
        seen, times, rate = read(clip)
        assert seen == list(numbers), name
        if times:
            assert times == pytest.approx(seconds, abs=1e-4), name
        assert [k / rate for k in range(len(seen))] == pytest.approx(seconds, abs=BENT), name


@pytest.mark.parametrize("total", [2, 3, 40, 127, 128, 129, 4000])
def test_frames_and_seconds(tmp_path, total):
    clip = sampled(films.write(tmp_path / "a.mp4", total), Sampling())
    assert clip.suffix == ".mp4"
    check(clip, *expected(total))


def test_one_frame(tmp_path):
    check(sampled(films.write(tmp_path / "a.mp4", 1), Sampling()), [0] * 128, [k / 25 / 128 for k in range(128)])


def test_no_padding(tmp_path, monkeypatch):
    clip = sampled(films.write(tmp_path / "a.mp4", 40), Sampling(pad=False))
    check(clip, range(40), [k / 25 for k in range(40)])


def test_official_timing(tmp_path):
    clip = sampled(films.write(tmp_path / "a.mp4", 300), Sampling(timing="official"))
    check(clip, frame_indices(300, 128), [k / 15 for k in range(128)])
    assert films.by_pyav(clip)[2] == 15


@pytest.mark.parametrize("total", [40, 300])
def test_lossless(tmp_path, total):
    source = films.write(tmp_path / "a.mp4", total, size=(192, 108))
    clip = sampled(source, Sampling(frames=64, long_side=96, quality="lossless"))
    check(clip, *expected(total, 64))
    with av.open(str(source)) as container:
        frames = [f.reformat(96, 54, "rgb24", interpolation="BICUBIC").to_ndarray() for f in container.decode(video=0)]
    with av.open(str(clip)) as container:
        for frame, index in zip(container.decode(video=0), expected(total, 64)[0], strict=True):
            assert np.array_equal(frame.to_ndarray(format="rgb24"), frames[index])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("b_frames.mp4", {"options": {"preset": "veryfast", "g": "30", "bf": "4"}}),
        ("open_gop.mp4", {"options": {"preset": "veryfast", "g": "30", "bf": "3", "x264-params": "open-gop=1"}}),
        ("intra.mp4", {"options": {"preset": "ultrafast", "g": "1"}}),
        ("one_gop.mkv", {"options": {"preset": "ultrafast", "g": "1000"}}),
        ("hevc.mp4", {"codec": "libx265", "options": {"preset": "ultrafast", "x265-params": "log-level=none"}}),
        ("av1.mp4", {"codec": "libsvtav1", "options": {"preset": "12"}}),
        ("av1.webm", {"codec": "libaom-av1", "options": {"cpu-used": "8", "usage": "realtime"}}),
        ("vp9.webm", {"codec": "libvpx-vp9", "options": {"deadline": "realtime", "cpu-used": "8"}}),
        ("vp9_hidden.webm", {"codec": "libvpx-vp9", "options": {"auto-alt-ref": "1", "lag-in-frames": "16"}}),
        ("vp8_hidden.webm", {"codec": "libvpx", "options": {"auto-alt-ref": "1", "lag-in-frames": "16"}}),
        ("mpeg4.avi", {"codec": "mpeg4", "options": {"bf": "2"}}),
        ("h264.avi", {"options": {"preset": "ultrafast", "bf": "0"}}),
        ("mpeg2.mpg", {"codec": "mpeg2video", "options": {"bf": "2"}}),
        ("h264.ts", {"options": {"preset": "veryfast", "bf": "2", "g": "30"}}),
        ("flv1.flv", {"codec": "flv"}),
        ("h264.flv", {"options": {"preset": "veryfast", "bf": "2", "g": "30"}}),
        ("mjpeg.mov", {"codec": "mjpeg", "pixels": "yuvj420p"}),
        ("wmv.wmv", {"codec": "wmv2"}),
        ("ten_bit.mp4", {"codec": "libx265", "pixels": "yuv420p10le", "options": {"x265-params": "log-level=none"}}),
        ("ten_bit_h264.mp4", {"pixels": "yuv420p10le"}),
        ("422.mp4", {"pixels": "yuv422p"}),
        ("444.mp4", {"pixels": "yuv444p"}),
        ("full_range.mp4", {"pixels": "yuvj420p"}),
        ("rgb.mp4", {"codec": "libx264rgb", "pixels": "rgb24", "options": {"preset": "ultrafast"}}),
        ("prores_alpha.mov", {"codec": "prores_ks", "pixels": "yuva444p10le"}),
        ("png_alpha.mov", {"codec": "png", "pixels": "rgba"}),
        ("animation.mov", {"codec": "qtrle", "pixels": "argb"}),
        ("vp9_alpha.webm", {"codec": "libvpx-vp9", "pixels": "yuva420p", "options": {"auto-alt-ref": "0"}}),
        ("grey.mkv", {"codec": "ffv1", "pixels": "gray"}),
        ("UPPER.MP4", {}),
        ("http:colon.mp4", {}),
        ("ntsc.mp4", {"fps": Fraction(30000, 1001)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_codecs_and_containers(tmp_path, name, options):
    source = films.write(tmp_path / name, 200, **options)
    clip = sampled(source, Sampling(frames=32))
    check(clip, *expected(200, 32, float(options.get("fps", 25))))
    assert clip.suffix == ".mp4"


@pytest.mark.parametrize("size", [(97, 65), (131, 64), (64, 131)])
def test_odd_sizes(tmp_path, size):
    source = films.write(tmp_path / "a.mp4", 40, size=size, pixels="yuv444p")
    clip = sampled(source, Sampling(frames=16))
    check(clip, *expected(40, 16))
    width, height = probe(clip).width, probe(clip).height
    assert (width, height) == (size[0] // 2 * 2, size[1] // 2 * 2)


@pytest.mark.parametrize("quality", ["default", "lossless"])
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_rotation(tmp_path, degrees, quality):
    source = films.rotated(films.write(tmp_path / "a.mp4", 60, size=(128, 64), turns=-degrees // 90), degrees)
    assert films.by_opencv(source)[0] == list(range(60)), "the source itself is upright to who knows rotation"
    clip = sampled(source, Sampling(frames=16, long_side=100, quality=quality))
    check(clip, *expected(60, 16))
    found = probe(clip)
    assert (found.width, found.height) == ((100, 50) if degrees == 180 else (50, 100))


@pytest.mark.parametrize("quality", ["default", "lossless"])
@pytest.mark.parametrize(("pixels", "matrix", "span"), [("yuv420p", 1, 1), ("yuv420p", 1, 2), ("yuvj420p", 5, 2)])
def test_colours_are_what_decord_sees_in_the_source(tmp_path, pixels, matrix, span, quality):
    source = tmp_path / "a.mp4"
    colours = np.repeat(np.repeat(np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7, 32, 0), 32, 1)
    with av.open(str(source), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"qp": "4"})
        (stream.width, stream.height), stream.pix_fmt = (128, 96), pixels
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, span
        for _ in range(4):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(colours, format="rgb24").reformat(format=pixels)))
        out.mux(stream.encode(None))
    clip = sampled(source, Sampling(frames=4, quality=quality))
    seen = [decord.VideoReader(str(path))[2].asnumpy().astype(int) for path in (source, clip)]
    assert np.abs(seen[0] - seen[1]).mean() <= (1 if quality == "default" else 0)


def test_variable_frame_rate(tmp_path):
    seconds = list(np.cumsum([0, *([0.04] * 60), *([0.5] * 39), *([0.01] * 100)]))
    source = films.write(tmp_path / "a.mp4", 200, seconds=seconds)
    for frames in (32, 200, 250):
        numbers, times, rate = films.by_pyav(sampled(source, Sampling(frames=frames)))
        assert len(numbers) == frames
        assert sorted(set(numbers)) == (numbers if frames <= 200 else list(range(200)))
        if frames <= 200:
            assert numbers == frame_indices(200, frames)
            assert times == pytest.approx([seconds[n] for n in numbers], abs=1e-3)
        assert (frames - 1) / rate == pytest.approx(seconds[-1], abs=0.01)


def test_starts_late(tmp_path):
    source = films.write(tmp_path / "a.mkv", 100, seconds=[7 + k / 25 for k in range(100)])
    check(sampled(source, Sampling(frames=32)), *expected(100, 32))


@pytest.mark.parametrize("claimed", [3, 1000])
def test_wrong_frame_count_in_header(tmp_path, claimed):
    source = films.write(tmp_path / "a.avi", 200, codec="mpeg4")
    data = source.read_bytes()
    source.write_bytes(data.replace((200).to_bytes(4, "little"), claimed.to_bytes(4, "little"), 2))
    assert av.open(str(source)).streams.video[0].frames == claimed
    check(sampled(source, Sampling(frames=32)), *expected(200, 32))


def test_truncated_tail(tmp_path):
    whole = films.write(tmp_path / "a.ts", 400, options={"preset": "ultrafast", "g": "25", "bf": "0"}).read_bytes()
    cut = tmp_path / "cut.ts"
    cut.write_bytes(whole[: len(whole) // 2])
    numbers, *_ = films.by_pyav(sampled(cut, Sampling(frames=64)))
    assert 150 < numbers[-1] < 250
    assert numbers == frame_indices(numbers[-1] + 1, 64)


@pytest.mark.parametrize(("kept", "fine"), [(0.99, True), (0.6, False)])
def test_truncated_mp4(tmp_path, kept, fine):
    source = tmp_path / "a.mp4"
    with av.open(str(films.write(tmp_path / "b.mp4", 400))) as old:
        with av.open(str(source), "w", options={"movflags": "faststart"}) as new:
            stream = new.add_stream_from_template(old.streams.video[0])
            for packet in old.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    new.mux(packet)
    os.truncate(source, int(source.stat().st_size * kept))
    if fine:
        numbers, *_ = films.by_pyav(sampled(source, Sampling(frames=64)))
        assert numbers == frame_indices(numbers[-1] + 1, 64)
        assert numbers[-1] > 380
    else:
        with pytest.raises(
            PackError, match=r"a\.mp4 \(codec h264\): it is cut off: 2\d\d of its 400 frames.*get the file"
        ):
            sampled(source, Sampling(frames=64))


def test_damage_in_the_middle(tmp_path):
    source = films.write(tmp_path / "a.mkv", 400, options={"preset": "ultrafast", "g": "25", "bf": "0"})
    data = bytearray(source.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = os.urandom(2000)
    source.write_bytes(data)
    numbers, times, _ = films.by_pyav(sampled(source, Sampling(frames=64)))
    assert len(numbers) == 64
    assert numbers[-1] == 399
    assert times[-1] == pytest.approx(399 / 25, abs=0.1)


def audio_only(path):
    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44100
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def no_frame(path):
    with av.open(str(path), "w", options={"movflags": "frag_keyframe+empty_moov"}) as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        out.start_encoding()


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("a.mp4", lambda path: path.write_bytes(b""), r"codec unknown\): it cannot be opened"),
        ("a.mp4", lambda path: path.write_bytes(os.urandom(5000)), r"codec unknown\): it cannot be opened"),
        ("a.mp4", lambda path: path.write_text("<html>404</html>"), r"codec unknown\): it cannot be opened"),
        ("a.mp4", lambda path: path.mkdir(), "it cannot be opened"),
        ("a.mp4", audio_only, "it holds no video stream"),
        ("a.mp4", no_frame, r"codec h264\): it holds no frame"),
        ("a.mp4", lambda path: None, "No such file"),
    ],
    ids=["empty", "noise", "page", "folder", "audio", "no_frame", "missing"],
)
def test_errors_name_file_codec_reason_and_remedy(tmp_path, home, name, make, reason):
    make(tmp_path / name)
    with pytest.raises(PackError, match=reason) as caught:
        sampled(tmp_path / name, Sampling())
    assert str(tmp_path / name) in str(caught.value)
    assert not list(home.rglob("*.mp4"))
    assert not list(home.rglob("*.part"))


def test_hanging_decode_is_ended(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.mp4")
    monkeypatch.setattr(clips, "PATIENCE_S", 2)
    for _ in range(2):  # the second question is told at once
        with pytest.raises(PackError, match="no progress for 2 s"):
            sampled(tmp_path / "a.mp4", Sampling())
        monkeypatch.setattr(clips, "PATIENCE_S", 1000)


def test_crashing_decoder_is_reported(tmp_path, monkeypatch):
    crash = tmp_path / "site"
    crash.mkdir()
    (crash / "sitecustomize.py").write_text("import os, sys\n'worker' in str(sys.orig_argv) and os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(crash))
    with pytest.raises(PackError, match="SIGABRT"):
        sampled(films.write(tmp_path / "a.mp4", 5), Sampling())


def test_clip_is_made_once(tmp_path, monkeypatch):
    source = films.write(tmp_path / "a.mp4", 40)
    clip = sampled(source, Sampling())
    made = clip.stat().st_mtime_ns
    assert sampled(source, Sampling()) == clip
    assert clip.stat().st_mtime_ns == made
    elsewhere = tmp_path / "b.mp4"
    shutil.copy2(source, elsewhere)
    assert sampled(elsewhere, Sampling()) == clip
    assert sampled(source, Sampling(frames=64)) != clip
    films.write(source, 41)
    assert sampled(source, Sampling()) != clip


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "unsealed"])
def test_damaged_clip_is_made_again(tmp_path, damage):
    source = films.write(tmp_path / "a.mp4", 40)
    clip = sampled(source, Sampling())
    whole = clip.read_bytes()
    middle = len(whole) // 2
    broken = {
        "cut": whole[:middle],
        "flip": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "empty": b"",
        "unsealed": whole[:-20],
    }
    clip.write_bytes(broken[damage])
    assert sampled(source, Sampling()) == clip
    assert clip.read_bytes() == whole


def test_sources_without_clips(tmp_path, monkeypatch, home):
    monkeypatch.setenv(f"{PREFIX}CLIPS", "0")
    plain, other, upper = tmp_path / "a.mp4", tmp_path / "b.webm", tmp_path / "C.MP4"
    for path in (plain, other, upper):
        path.write_bytes(path.name.encode())
    assert sampled(plain, Sampling()) == plain
    for path in (other, upper):
        for _ in range(2):
            link = sampled(path, Sampling())
            assert link.name.endswith(".mp4")
            assert link.is_relative_to(home)
            assert link.read_bytes() == path.name.encode()


def test_full_disk(tmp_path, monkeypatch, home):
    """The file size limit stands in for a full disk: writing fails with an error of the same kind."""
    source = films.write(tmp_path / "a.mp4", 200, size=(640, 360))
    limit = tmp_path / "site"
    limit.mkdir()
    (limit / "sitecustomize.py").write_text(
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "'worker' in str(sys.orig_argv) and resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    )
    with monkeypatch.context() as context:
        context.setenv("PYTHONPATH", str(limit))
        with pytest.raises(PackError, match=r"a clip cannot be written: File too large; free some space"):
            sampled(source, Sampling())
    assert not list(home.rglob("*.part"))
    check(sampled(source, Sampling()), *expected(200))


def test_size_is_bounded_and_what_is_in_use_stays(tmp_path, monkeypatch):
    sources = [films.write(tmp_path / f"{k}.mp4", 40 + k) for k in range(6)]
    clips.ensure(sources[0], Sampling(), 1)
    folder = clips.folder(clips.settings.load().root)
    one = shelf.size(folder)
    monkeypatch.setenv(f"{PREFIX}CLIP_CACHE_GB", str(2.5 * one / 1e9))
    used = sampled(sources[1], Sampling())
    for source in sources[2:]:
        clips.ensure(source, Sampling(), 1)
    left = {path.name for path in folder.glob("*.mp4")}
    assert used.name in left
    assert left == {used.name, clips.clip_of(sources[5], Sampling(), folder.parent).name}
    stale = folder / "x.1.part"
    stale.touch()
    os.utime(stale, (0, 0))
    clips.ensure(sources[0], Sampling(), 1)
    assert not stale.exists()


@pytest.mark.parametrize(("name", "frames"), [("bigbuckbunny.mp4", 128), ("bikes.mp4", 128)])
def test_quality_on_real_footage(tmp_path, name, frames):
    """PSNR in RGB against the sampled frames, resized by the same kernel."""
    source = footage(name)
    clip = sampled(source, Sampling(frames=frames))
    found = probe(clip)
    with av.open(str(source)) as one, av.open(str(clip)) as other:
        shots = list(one.decode(video=0))
        values = []
        for index, copy in zip(frame_indices(len(shots), frames), other.decode(video=0), strict=True):
            shot = shots[index].reformat(found.width, found.height, "rgb24", interpolation="BICUBIC").to_ndarray()
            values.append(10 * np.log10(255**2 / np.mean((shot.astype(float) - copy.to_ndarray(format="rgb24")) ** 2)))
    assert np.mean(values) >= 42
    assert min(values) >= 40


@pytest.mark.parametrize("total", [3, 40, 128, 4000])
def test_what_qwen_is_told(tmp_path, total):
    """The frames and the seconds that Qwen3-VL computes from what lmms-eval's reader tells it."""
    from qwen_vl_utils import fetch_video

    clip = sampled(films.write(tmp_path / "a.mp4", total), Sampling())
    frames, told = fetch_video({"video": str(clip), "nframes": 128}, return_video_metadata=True)
    numbers, seconds = expected(total)
    assert [films.number(frame.permute(1, 2, 0).numpy()) for frame in frames] == numbers
    assert told["total_num_frames"] == 128
    assert [index / told["fps"] for index in told["frames_indices"]] == pytest.approx(seconds, abs=BENT)


def test_nothing_heavy_is_imported():
    heavy = {"av", "numpy", "decord", "cv2", "torch", "lmms_eval"}
    allowed = {"ahead": set(), "backends": set(), "worker": {"av", "numpy"}}
    for module, may in allowed.items():
        code = f"import sys, lmms_eval_tasks.media.{module}; assert not {heavy - may} & set(sys.modules)"
        assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0, module
