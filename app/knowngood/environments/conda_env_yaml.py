"""conda's environment.yml. Apart from conda's lists, because only this needs PyYAML: 40 ms of a command's start."""

from dataclasses import replace
from itertools import chain

import yaml

from knowngood.domain.message import Message
from knowngood.environments.conda_list import Spec, read_spec
from knowngood.environments.python_markers import pythons_of, state
from knowngood.environments.requirements_txt import join_parts, read_lines
from knowngood.environments.resolve import StatedEnvironment
from knowngood.environments.source import MOST_PACKAGES, Source, quote, refuse_long_lines

# PyYAML composes about 300 KB a second (2026-11-21); real files have a tenth of this.
_LARGEST_YAML, _LONGEST_LINE = 128 << 10, 2000
_DEEPEST = 20


class _Loader(yaml.BaseLoader):
    """A loader that limits how deep lists in brackets nest: each of them is looked at again for every token."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        if self.flow_level >= _DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"brackets stand more than {_DEEPEST} deep", problem_mark=self.get_mark()
            )
        super().fetch_flow_collection_start(token)


def read_environment_yml(source: Source, python: str) -> StatedEnvironment:
    root = _compose(source)
    if not isinstance(root, yaml.MappingNode):
        raise source.wrong(1, Message("file_no_mapping"))
    fields = _fields(root, source)
    dependencies = fields.get("dependencies")
    if not isinstance(dependencies, yaml.SequenceNode):
        line = _line(dependencies) if dependencies else 1
        raise source.wrong(line, Message("file_no_dependencies"))
    channel = next((_scalar(channel_node, source) for channel_node in _items(fields.get("channels"))), "")
    # Aliases repeat what says the same each time: every node is read once, however often it is named.
    specs: list[Spec] = []
    lists: dict[yaml.Node | None, None] = {}
    for node in dict.fromkeys(dependencies.value):
        if isinstance(node, yaml.MappingNode):
            lists[_fields(node, source).get("pip")] = None
        else:
            specs.append(read_spec(_scalar(node, source), channel, source, _line(node)))
    pip = [
        (_line(class_), _scalar(class_, source)) for class_ in dict.fromkeys(chain.from_iterable(map(_items, lists)))
    ]
    if len(specs) + len(pip) > MOST_PACKAGES:
        raise source.wrong(0, Message("file_packages", most=MOST_PACKAGES))
    wanted = next((spec.wanted for spec in specs if spec.name.casefold() == "python"), "")
    pythons = pythons_of(wanted, stated=python, source=source)
    return _with_pip("conda environment.yml", specs, pip, source, pythons)


def _with_pip(
    kind: str, specs: list[Spec], pip: list[tuple[int, str]], source: Source, pythons: frozenset[str]
) -> StatedEnvironment:
    """pip's part is read as the lines of a requirements file."""
    pins = [(pin, pythons) for spec in specs for pin in spec.pins]
    if not pip:
        return state(kind, pins, pythons)
    read = read_lines(source, pythons, [(line, join_parts([" ".join(text.split())])) for line, text in pip])
    return replace(read, kind=kind, pins=(*(pin for pin, _ in pins), *read.pins))


def _compose(source: Source) -> yaml.Node | None:
    if len(source.text) > _LARGEST_YAML:
        raise source.wrong(0, Message("file_long", n=len(source.text), most=_LARGEST_YAML))
    refuse_long_lines(source, _LONGEST_LINE)
    try:
        node: yaml.Node | None = yaml.compose(source.text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise source.wrong(line, _unreadable(error.problem or error)) from None
    except yaml.YAMLError as error:
        raise source.wrong(0, _unreadable(error)) from None
    except ValueError as error:  # \UFFFFFFFF in quotes
        raise source.wrong(0, _unreadable(error)) from None
    return node


def _unreadable(problem: object) -> Message:
    return Message("file_unreadable", name="YAML", said=quote(str(problem)))


def _fields(node: yaml.MappingNode, source: Source) -> dict[str, yaml.Node]:
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _scalar(key, source)
        if name in fields:
            raise source.wrong(_line(key), Message("file_duplicate", name=quote(name)))
        fields[name] = value
    return fields


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _scalar(node: yaml.Node, source: Source) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise source.wrong(_line(node), Message("file_no_scalar"))
    return str(node.value)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
