"""Every environment variable of the pack, typed, in one class."""

import os
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from lmms_eval_tasks.errors import PackError, listing

PREFIX = "LMMS_EVAL_TASKS_"


class Settings(BaseSettings):
    """The pack's settings; field ``x`` is read from the variable ``LMMS_EVAL_TASKS_X``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, env_ignore_empty=True)

    home: Path = Field(
        Path("~/.cache/lmms_eval_tasks"),
        description="datasets, clips, judgements, run records, replies in conversations",
    )
    data_mt_video_bench: str | None = Field(
        None, description="MT-Video-Bench: prepared folder, or ORG/NAME[@REVISION] on the Hub"
    )
    data_mvpbench: str | None = Field(None, description="MVPBench: prepared folder, or ORG/NAME[@REVISION] on the Hub")
    data_mlvu: str | None = Field(None, description="MLVU: prepared folder, or ORG/NAME[@REVISION] on the Hub")
    data_scvbench: str | None = Field(None, description="SCVBench: prepared folder, or ORG/NAME[@REVISION] on the Hub")
    videos_mt_video_bench: Path | None = Field(None, description="folder with the videos of MT-Video-Bench")
    videos_mvpbench: Path | None = Field(None, description="folder with the videos of MVPBench")
    videos_mlvu: Path | None = Field(None, description="folder with the videos of MLVU")
    videos_scvbench: Path | None = Field(None, description="folder with the videos of SCVBench")

    judge_model: str | None = Field(None, description="judge model; unset: answers are left unjudged")
    judge_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices(f"{PREFIX}JUDGE_BASE_URL", "OPENAI_API_URL", "OPENAI_BASE_URL"),
        description="OpenAI-compatible endpoint; else lmms-eval's OPENAI_API_URL",
    )
    judge_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices(f"{PREFIX}JUDGE_API_KEY", "OPENAI_API_KEY"),
        description="its key; else lmms-eval's OPENAI_API_KEY",
    )
    judge_concurrency: int = Field(32, ge=1, le=1024, description="judge calls in flight, over all ranks")
    judge_timeout: float = Field(120, gt=0, description="seconds that one judge call may take")
    judge_repeats: int = Field(3, ge=1, le=100, description="judgings of each answer, averaged")
    judge_temperature: float | None = Field(None, ge=0, le=2, description="unset: the endpoint's own")

    frames: int | None = Field(None, ge=1, description="frames per video, for all models; unset: as the task says")
    frames_per_question: int | None = Field(
        None,
        ge=1,
        description="frames of a question with several videos, split evenly over them; unset: as the task says",
    )
    long_side: int | None = Field(None, ge=2, description="longer side of a frame in pixels, for all models")
    pad_short: bool = Field(True, description="repeat frames of a video that has fewer than asked")
    clips: bool = Field(True, description="0: hand the backends the source files")
    clip_timing: Literal["source", "official"] = Field("source", description="official: 15 fps, as the authors")
    clip_quality: Literal["default", "lossless"] = Field("default", description="default is about 42 dB")
    clip_cache_gb: float = Field(100, gt=0, description="size that all clips together may take")

    on_missing_video: Literal["stop", "skip"] = Field("stop", description="skip: run without those questions")
    autoload: bool = Field(True, description="0: do not add our tasks to lmms-eval")

    @cached_property
    def root(self) -> Path:
        """``home`` as an absolute path."""
        return Path(os.path.expandvars(self.home)).expanduser().absolute()

    @property
    def judge_endpoint(self) -> str | None:
        """The judge's base URL; None is the SDK's default.

        lmms-eval's ``OPENAI_API_URL`` is understood in both of its conventions: a base URL, or one that ends in
        ``/chat/completions``.
        """
        if not self.judge_base_url:
            return None
        parts = urlsplit(self.judge_base_url.strip())
        return urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")))

    @property
    def judge_key(self) -> str | None:
        """The judge's key in plain text, for the client alone."""
        return self.judge_api_key.get_secret_value() if self.judge_api_key else None

    def data(self, benchmark: str) -> str | None:
        """The prepared folder or Hub id that was set for a benchmark, such as ``"mt_video_bench"``."""
        value: str | None = getattr(self, f"data_{benchmark}")
        return value

    def videos(self, benchmark: str) -> Path | None:
        """The folder of videos that was set for a benchmark."""
        value: Path | None = getattr(self, f"videos_{benchmark}")
        return value.expanduser() if value else None


def load() -> Settings:
    """Reads the settings from the environment; again only when a variable has changed.

    Raises:
        PackError: A variable has a value that is not allowed; all such are named at once.
    """
    # Asked for several times with every doc: only what is ours is decoded.
    return _load(tuple([(name, os.environ[name]) for name in os.environ if name.startswith((PREFIX, "OPENAI_"))]))


@lru_cache(maxsize=8)
def _load(_environment: tuple[tuple[str, str], ...]) -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        raise PackError(listing("Settings with a value that is not allowed", map(_explain, error.errors()))) from None


def without_credentials(url: str) -> str:
    """A URL as it may be printed and recorded: no user, password or query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def unknown() -> list[str]:
    """Names of variables with the pack's prefix that it does not know: mostly misspelt ones."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name.upper() not in known)


def _explain(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    variable = name if name.isupper() else f"{PREFIX}{name.upper()}"
    value = "the given value" if "KEY" in variable else repr(error["input"])
    return f"{variable}={value}: {error['msg']}"
