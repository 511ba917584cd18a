"""
The settings: one frozen value, read once at the start of a process and passed on.

Each field is read from the environment variable of its name with `ECHOPLANE_` before it. A variable
with that prefix which names no field is an error: a misspelt database URL must not quietly start an
embedded server.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.errors import BadRequest
from contracts.limits import DISCOVERIES_MAX, MODEL_SECONDS_MAX, WORKERS_MAX

PREFIX: Final = "ECHOPLANE_"

_SENDS_SPANS: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _default_data_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/echoplane")
    home = os.environ.get("XDG_DATA_HOME")  # noqa: TID251 - this module is where the environment is read
    return (Path(home) if home else Path.home() / ".local" / "share") / "echoplane"


class Settings(BaseSettings):
    """What a person may decide. Everything has a value that works with nothing configured."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    data_dir: Annotated[Path, Field(default_factory=_default_data_dir)]
    """
    Where embedded servers, keys, logs and models are kept. For root `/var/lib/echoplane`, for others
    `$XDG_DATA_HOME/echoplane` or `~/.local/share/echoplane`.
    """
    database_url: SecretStr | None = None
    """PostgreSQL 18 with pgvector and btree_gist, as role `echoplane_plane`; none: the embedded one."""
    database_relay_url: SecretStr | None = None
    """The same database as `echoplane_relay`. Goes together with `database_url`."""
    database_owner_url: SecretStr | None = None
    """The same database as `echoplane_owner`. Needed only where migrations are run."""
    database_backfill_url: SecretStr | None = None
    """The same database as `echoplane_backfill`. Needed only where the right `backfill` is used."""
    redis_url: SecretStr | None = None
    """An external Redis or Valkey; none: embedded."""
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Field(ge=1, le=65535)] = 7415
    workers: Annotated[int, Field(ge=1, le=WORKERS_MAX)] = 1
    """How many processes fold: tenants in parallel, each in order."""
    discoveries: Annotated[int, Field(ge=1, le=DISCOVERIES_MAX)] = 1
    """How many processes propose: each has the tenants that a hash of their names gives it."""
    traces_url: str | None = None
    """Where spans are sent, by OTLP over HTTP; none: there are none. Needs the extra `traces`."""
    model_dir: Path | None = None
    """
    Folder with `model.onnx` and `tokenizer.json` of any embedding model, or with `model.safetensors` and
    `tokenizer.json` of all-MiniLM-L6-v2; none: the package's.
    """
    embeddings_url: str | None = None
    """What stands before `/embeddings` of an OpenAI-compatible endpoint; none: vectors are made here."""
    embeddings_model: str = ""
    """The model's name there. Goes together with `embeddings_url`."""
    embeddings_key: SecretStr | None = None
    """Sent there as a bearer token."""
    embeddings_key_file: Path | None = None
    """File that holds the same, instead."""
    reader_url: str | None = None
    """What stands before `/chat/completions` of an OpenAI-compatible endpoint; none: there is no reader."""
    reader_model: str = ""
    """The model's name there, in full. Goes together with `reader_url`."""
    reader_key: SecretStr | None = None
    """Sent there as a bearer token."""
    reader_seconds: Annotated[float, Field(gt=0, le=MODEL_SECONDS_MAX)] = 60
    """How long it may take to read one context, all attempts together."""
    judge_url: str | None = None
    """The same of the endpoint that judges answers of a measured run; none: `audit judge` has no judge."""
    judge_model: str = ""
    """The model's name there, in full. Goes together with `judge_url`."""
    judge_key: SecretStr | None = None
    """Sent there as a bearer token."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    master_key_file: Path | None = None
    """File of mode 0600 with 64 hexadecimal digits; none: made below the data folder at the first start."""
    checkpoint_key_file: Path | None = None
    """The same, of the key that signs checkpoints; none: made at the first checkpoint."""

    @field_validator("traces_url")
    @classmethod
    def _can_be_sent(cls, url: str | None) -> str | None:
        if url is not None and not all(map(_installed, _SENDS_SPANS)):
            raise ValueError("needs the extra: install echoplane[traces]")
        return url

    @model_validator(mode="after")
    def _one_embedder(self) -> Self:
        if (self.embeddings_url is None) != (not self.embeddings_model):
            raise ValueError("embeddings_url and embeddings_model go together")
        if self.embeddings_url is None:
            if self.embeddings_key is not None or self.embeddings_key_file is not None:
                raise ValueError("a key of embeddings needs embeddings_url")
            return self
        if not self.embeddings_url.startswith(("http://", "https://")):
            raise ValueError("embeddings_url begins with http:// or https://")
        if self.model_dir is not None:
            raise ValueError("embeddings_url and model_dir are two embedders")
        if self.embeddings_key is not None and self.embeddings_key_file is not None:
            raise ValueError("embeddings_key and embeddings_key_file are two keys")
        return self

    @model_validator(mode="after")
    def _language_models_are_whole(self) -> Self:
        for part, url, model, key in (
            ("reader", self.reader_url, self.reader_model, self.reader_key),
            ("judge", self.judge_url, self.judge_model, self.judge_key),
        ):
            if (url is None) != (not model):
                raise ValueError(f"{part}_url and {part}_model go together")
            if url is None and key is not None:
                raise ValueError(f"{part}_key needs {part}_url")
            if url is not None and not url.startswith(("http://", "https://")):
                raise ValueError(f"{part}_url begins with http:// or https://")
        return self

    @model_validator(mode="after")
    def _urls_go_together(self) -> Self:
        if (self.database_url is None) != (self.database_relay_url is None):
            raise ValueError("database_url and database_relay_url go together")
        others = (self.database_owner_url, self.database_backfill_url)
        if self.database_url is None and any(url is not None for url in others):
            raise ValueError("database_owner_url and database_backfill_url need database_url")
        return self


def read_settings(**overrides: object) -> Settings:
    """
    Read the environment, once.

    Args:
        overrides: What a command line decides; goes before the environment.

    Raises:
        BadRequest: A value is wrong, or a variable with our prefix is none of ours. Names the variable.
    """
    _refuse_unknown(os.environ)  # noqa: TID251 - this module is where the environment is read
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "_".join(str(part) for part in first["loc"]).upper() or "*"
        raise BadRequest(field=f"{PREFIX}{name}", reason=first["msg"]) from None


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name in sorted(environment):
        # pydantic-settings reads names in any case.
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            raise BadRequest(field=name, reason="there is no such setting")
