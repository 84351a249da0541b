"""JSON that is read off values: a field takes the attribute of its own name, or the one that `read_from` names.

Where the JSON of a value is all of it, the value's own dataclass is the field's type, and there is no body for it.
Where it is most of it, `fields_of` takes the fields from the dataclass, and the body declares the others.
"""

from collections.abc import Callable, Collection
from typing import Annotated, Any, Self, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    WrapSerializer,
    create_model,
)

from knowngood.domain.issue import Severity
from knowngood.domain.message import Message, english
from knowngood.web.urls import attempt_address, cell_address, issue_address


class Body(BaseModel, from_attributes=True, validate_by_name=True, validate_by_alias=True):
    @classmethod
    def of(cls, value: object, context: object = None) -> Self:
        """`context` is for fields whose validators ask for it."""
        return cls.model_validate(value, context=context)


English = Annotated[str, BeforeValidator(english)]
"""The sentence of a message; empty where there is none."""


class OfCellBody(Body):
    """Whatever is said of one cell: an issue, a build and a hardware class."""

    issue: str
    build: str
    hardware: str


class TitledIssueBody(Body):
    """An issue by what a list says of it first."""

    issue: str
    title: str
    component: str
    severity: Severity
    silent: bool


def read_from(first: str, *path: str | int, default: Any = ...) -> Any:  # noqa: ANN401 - what a field is declared with
    """The attribute, or attribute or item of an attribute, that a field is read from; `default` is for where it is not.

    Without a default it has to be there.
    """
    return Field(default, validation_alias=AliasPath(first, *path))


_B = TypeVar("_B", bound=Body)


def fields_of(value: type, *path: str, without: Collection[str] = ()) -> Callable[[type[_B]], type[_B]]:
    """Give a body the fields of a dataclass, read from the attribute at `path`, but for those `without` and those that
    it has already. They come before its own; a message becomes its sentence.
    """

    def extend(body: type[_B]) -> type[_B]:
        fields: dict[str, Any] = {
            name: (English if kind in {Message, Message | None} else kind, read_from(*path, name))
            for name, kind in get_type_hints(value).items()
            if name not in {*without, *body.model_fields}
        }
        first: Any = create_model(value.__name__, __base__=body.__mro__[1], **fields)
        return create_model(body.__name__, __base__=(body, first), __doc__=body.__doc__, __module__=body.__module__)

    return extend


IssueUrl = Annotated[str, AfterValidator(issue_address)]
"""The address of the issue with this id."""

CellUrl = Annotated[str, BeforeValidator(lambda key: cell_address(*key))]
"""The address of the cell with this `key`."""

AttemptUrl = Annotated[str, AfterValidator(attempt_address)]
"""The address of the attempt with this id."""


def rounded(digits: int) -> WrapSerializer:
    """A number that is rounded in JSON alone."""
    return WrapSerializer(lambda number, _: None if number is None else round(number, digits))
