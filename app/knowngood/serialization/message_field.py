"""The types of a message in an answer: pages read it as it is, and JSON has its sentence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from knowngood.domain.message import Message, english


def _for_reader(message: Message, info: Any) -> str:  # noqa: ANN401 - pydantic's, which is not imported here
    return info.context.write(message) if info.context else english(message)


@dataclass(frozen=True)
class _WrittenBy:
    """The way JSON writes a message, without pydantic, which commands that answer questions do not import."""

    function: Callable[..., str]
    takes_context: bool = False

    def __get_pydantic_core_schema__(self, *_: object) -> dict[str, object]:
        written = {
            "type": "function-plain",
            "function": self.function,
            "info_arg": self.takes_context,
            "return_schema": {"type": "str"},
        }
        return {"type": "any", "serialization": written}


MessageField = Annotated[Message, _WrittenBy(english)]
"""In English: what a rule says."""

ReaderMessageField = Annotated[Message, _WrittenBy(_for_reader, takes_context=True)]
"""In the language of the request, which is the writer's context: what the interface says.

A default is made by a factory: pydantic would put the message itself in the schema.
"""
