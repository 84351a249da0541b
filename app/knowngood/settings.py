"""The environment as one frozen value, read by entry points only. Every name begins with KNOWNGOOD_."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowngood.catalogue_digest import SHIPPED
from knowngood.data_dir import STORE, default_data_dir
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.isolation import Isolation

_GIB = 1024**3
_PREFIX = "KNOWNGOOD_"


class Settings(BaseModel):
    """The settings of an installation; sizes in bytes, times in seconds.

    `data_dir` holds the SQLite file, environments and scratch space. `database_url` names another store
    (`postgresql://...`). `catalogue` lists folders of a team's own issues, separated by `:`, beside the shipped ones;
    `shipped` false leaves those out.
    `reads` is `open`, or `token`: then nothing is read without one. `requests_per_s` with `burst` is how often one
    address, or one token, may ask (0: as often as it likes); `results_limit` is the largest bundle taken over HTTP,
    `results_per_minute` how many of them one token may go on sending (0: any number).
    `slots` is how many arms run side by side, `memory_limit` what one arm with all its children may hold. Arms are shut
    off from this host as far as its kernel allows, up to `max_isolation`, and those that need a GPU up to
    `max_gpu_isolation` too. Below `min_isolation` nothing is run (docs/threat-model.md).
    `processes` is how many answer requests side by side in `serve`. Asked to stop (SIGTERM), it says for `drain_s`
    seconds that it is not ready any more, and answers on, so that a balancer sends requests elsewhere.
    `log_format` and `log_level` are of the log on standard error; without a level `serve` and `dispatch` log from info
    on and other commands from warning on.
    Each may come in a file: KNOWNGOOD_DATABASE_URL_FILE names one that holds what KNOWNGOOD_DATABASE_URL would say.
    """

    model_config = ConfigDict(frozen=True)

    data_dir: Path = Field(default_factory=default_data_dir)
    database_url: str = ""
    catalogue: str = ""
    shipped: bool = True
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    reads: Literal["open", "token"] = "open"
    requests_per_s: float = Field(default=500.0, ge=0)
    burst: int = Field(default=5000, ge=1)
    results_limit: int = Field(default=_GIB // 2, ge=1)
    results_per_minute: float = Field(default=60.0, ge=0)
    slots: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1)
    envs_limit: int = Field(default=60 * _GIB, ge=_GIB)
    memory_limit: int = Field(
        default_factory=lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, ge=_GIB // 4
    )
    lease_s: float = Field(default=60.0, gt=1)
    fork: bool = True
    min_isolation: Isolation = Isolation.NONE
    max_isolation: Isolation = Isolation.FILTERED
    max_gpu_isolation: Isolation = Isolation.FILTERED
    processes: int = Field(default=1, ge=1, le=64)
    drain_s: float = Field(default=1.0, ge=0, le=300)
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["", "debug", "info", "warning", "error"] = ""

    @property
    def database(self) -> str:
        """The address of the store: the one given, else a SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.database_file}"

    @property
    def database_file(self) -> Path:
        return self.data_dir.expanduser().resolve() / STORE

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the catalogue: what comes with this release, then the team's own."""
        return (*((SHIPPED,) if self.shipped else ()), *self.catalogue_folders)

    @property
    def catalogue_folders(self) -> tuple[Path, ...]:
        return tuple(Path(part).expanduser() for part in self.catalogue.split(os.pathsep) if part)


def read_settings() -> Settings:
    """Read the environment. Raises BadRequest naming each variable that cannot be used, and why."""
    try:
        return Settings.model_validate(_given(os.environ))
    except ValidationError as error:
        wrong = "; ".join(
            f"KNOWNGOOD_{str(fault['loc'][0]).upper()}={fault['input']!r}: {fault['msg']}" for fault in error.errors()
        )
        raise BadRequest(f"a setting cannot be used: {wrong}") from None


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    """The values of KNOWNGOOD_..., or of the files that KNOWNGOOD_..._FILE name, by setting."""
    variables = {name: f"{_PREFIX}{name.upper()}" for name in Settings.model_fields}
    set_here = {name: environ[variable] for name, variable in variables.items() if variable in environ}
    files = {name: _read(variable, environ) for name, variable in variables.items() if environ.get(f"{variable}_FILE")}
    return set_here | files


def _read(variable: str, environ: Mapping[str, str]) -> str:
    """The content of its file, without the line's end. Raises BadRequest; it never shows a value."""
    path = environ[f"{variable}_FILE"]
    if environ.get(variable):
        raise BadRequest(f"{variable} and {variable}_FILE are both set; keep one of them")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise BadRequest(f"{variable}_FILE={path} cannot be read: {reason}") from None
