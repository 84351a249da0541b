"""`/api/v1/environment`: what `knowngood env` says of an environment whose versions an address names."""

import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.ask.lookup.service import EnvironmentAnswer, answer_environment
from knowngood.domain.builds.build_names import read_build_name
from knowngood.domain.hardware_names import hardware_named
from knowngood.environments.source import show
from knowngood.gate.renderers import MEDIA, Form
from knowngood.gate.renderers.json import dumped
from knowngood.gate.request import AttachedFile, BadField, GateRequest, about
from knowngood.matrix.overview.selection import Names, Words
from knowngood.move.upgrade.constraints import read_driver
from knowngood.move.upgrade.request import NO_PACKAGE
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.store.knowledge.model import Knowledge
from knowngood.web.request_context import Context

router = APIRouter(tags=["environment"])

_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]{0,80}(?:==[\w.!+-]{1,60})?", re.ASCII)


class EnvironmentQuery(BaseModel):
    """An environment by its versions alone: no path, no host, no index."""

    build: Annotated[Words, Field(description="The build id, or the version of torch: 2.7.1+cu126")] = ""
    python: Annotated[Words, Field(description="3.12; empty: as the build says, else open")] = ""
    platform: Annotated[Words, Field(description="linux-x86_64, macos-arm64, ...; empty: not said")] = ""
    hardware: Annotated[Names, Field(description="GPUs such as H100, or hardware classes; none: all measured ones")]
    driver: Annotated[Words, Field(description="NVIDIA's driver: 550.54.15")] = ""
    has: Annotated[Names, Field(description="Packages beside torch: xformers==0.0.31.post1")]

    def answer(self, knowledge: Knowledge, now: datetime) -> EnvironmentAnswer:
        """Raises BadField for a part that cannot be understood."""
        with about("hardware"):
            return answer_environment(self._request(), knowledge, now)

    def _request(self) -> GateRequest:
        """The question with the environment as `collect_env` prints one, so that it is read as any other."""
        with about("build"):
            name = read_build_name(self.build)
        with about("driver"):
            driver = read_driver(self.driver)
        if bad := next((package for package in self.has if not _PACKAGE.fullmatch(package)), ""):
            raise BadField("has", f'"{show(bad)}" is no package; write xformers or xformers==0.0.31.post1')
        named = {text: hardware_named(text) for text in self.hardware}
        gpus = [gpu.name for gpu in named.values() if gpu and gpu.name != gpu.hardware]
        lines = [f"PyTorch version: {name.torch}", *([f"Nvidia driver version: {driver}"] if driver else [])]
        lines += [f"GPU {at}: {gpu}" for at, gpu in enumerate(gpus)]
        has = [package if "==" in package else f"{package}==" for package in self.has if package != NO_PACKAGE]
        lines += [f"[pip3] {package}" for package in [*([f"triton=={name.triton}"] if name.triton else []), *has]]
        return GateRequest(
            environment=AttachedFile("\n".join(lines)),
            python=self.python or name.python or "",
            platform=self.platform,
            hardware=tuple(self.hardware) if len(gpus) < len(named) else (),
        )


@router.get("/environment", response_model=dict[str, Any])
def environment(context: Context, query: Annotated[EnvironmentQuery, Query()]) -> Response:
    """Say of an environment, as `knowngood env --json` does, which tested build it is, what fails there, worst first,
    and what wheels say.
    """

    def show(snapshot: KnowledgeSnapshot) -> Response:
        return context.ruling(dumped(query.answer(snapshot.knowledge, context.now).document), MEDIA[Form.JSON], {})

    return context.answer_from(show)
