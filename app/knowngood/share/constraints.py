"""`knowngood constraints BUILD`: a constraints file for pip, of what was measured together with a build."""

import sys

from knowngood.cli.knowledge import knowledge_here
from knowngood.cli.lazy import command
from knowngood.cli.options import argument
from knowngood.domain.builds.build_names import find_build_or_wheel
from knowngood.environments.wheels.locks import constraints_of
from knowngood.environments.wheels.table import wheels_of


@command(
    "Print constraints for pip: the packages that a build was measured among, and those made for its torch alone.\n\n"
    "Each line says which. Ends with 2, and names the nearest, for a build that was not resolved and measured here.",
    argument("build", "The build: its id, or a version of torch."),
    example="constraints torch-2.13.0+cu130",
)
def constraints(*, build: str) -> None:
    known = knowledge_here().known
    sys.stdout.write(constraints_of(find_build_or_wheel(build, known.builds), known.build_names, wheels_of(known)))
