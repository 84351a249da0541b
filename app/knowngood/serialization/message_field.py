"""The type of a message in an answer: pages read it as it is, and JSON has its sentence."""

from typing import Annotated

from knowngood.domain.message import Message, english


class _InEnglish:
    @staticmethod
    def __get_pydantic_core_schema__(*_: object) -> dict[str, object]:
        """Said without pydantic, which commands that answer questions do not import."""
        written = {"type": "function-plain", "function": english, "return_schema": {"type": "str"}}
        return {"type": "any", "serialization": written}


MessageField = Annotated[Message, _InEnglish]
