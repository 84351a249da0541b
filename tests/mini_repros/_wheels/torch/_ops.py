"""Operators as far as a probe looks at them: a name, a schema, and a call that the type answers."""

from types import SimpleNamespace


class OpOverload:
    def __init__(self, name, function):
        self._schema = SimpleNamespace(name=name)
        self._op = function

    def __call__(self, /, *args, **kwargs):
        return self._op(*args, **kwargs)


class OpOverloadPacket:
    def __init__(self, name, function):
        self._qualified_op_name = name
        self._op = function

    def __call__(self, /, *args, **kwargs):
        return self._op(*args, **kwargs)
