"""Answers: Structs with described fields, from which JSON, its schema and the description of the API come."""

from collections.abc import Iterable, Iterator
from inspect import getdoc
from typing import Any, ClassVar, Final, Self, dataclass_transform

import msgspec


class _Described:
    def __init__(self, default: object, description: str) -> None:
        self.default, self.description = default, description


def Field(description: str, *, default: Any = msgspec.NODEFAULT) -> Any:  # noqa: N802, ANN401 - its value is that of a field
    """Describe a field, for the schema of its answer."""
    return _Described(default, description)


class _AnswerMeta(msgspec.StructMeta):
    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:  # noqa: ANN401
        described = {field: each for field, each in namespace.items() if isinstance(each, _Described)}
        for field, each in described.items():
            namespace[field] = each.default
            if each.default is msgspec.NODEFAULT:
                del namespace[field]
        made: Any = super().__new__(cls, name, bases, namespace, **{"kw_only": True} | config)
        inherited = getattr(made.__base__, "descriptions", {})
        made.descriptions = inherited | {field: each.description for field, each in described.items()}
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Answer(msgspec.Struct, metaclass=_AnswerMeta, frozen=True, forbid_unknown_fields=True):
    """Exactly the declared fields, and frozen. JSON has no infinite numbers (N* of a pair without a gap): they are written as null."""

    descriptions: ClassVar[dict[str, str]]

    def as_json(self) -> bytes:
        """Return it as JSON."""
        return _ENCODER.encode(self)

    def as_dict(self) -> dict[str, Any]:
        """Return its fields, as JSON has them."""
        fields: dict[str, Any] = msgspec.to_builtins(self, enc_hook=float)
        return fields

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - values of fields
        """Return it with other values of some fields."""
        return msgspec.structs.replace(self, **changes)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: object) -> Any:  # noqa: ANN401 - pydantic's
        """Let FastAPI pass an answer on."""
        from pydantic_core import core_schema  # noqa: PLC0415 - commands on files load no pydantic

        as_builtins = core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins)
        return core_schema.is_instance_schema(cls, serialization=as_builtins)

    @classmethod
    def __get_pydantic_json_schema__(cls, _: object, __: object) -> dict[str, Any]:
        """Refer to its schema, one of the components that the description of the API holds."""
        return {"allOf": [{"$ref": f"#/components/schemas/{cls.__name__}"}]}


_ENCODER: Final = msgspec.json.Encoder(enc_hook=float)  # a number of numpy is written as one of Python's


def every_answer(of: type[Answer] = Answer) -> Iterator[type[Answer]]:
    """Yield every kind of answer that is imported."""
    for each in of.__subclasses__():
        yield each
        yield from every_answer(each)


def answer_schemas(answers: Iterable[type[msgspec.Struct]], ref_template: str) -> dict[str, Any]:
    """Return the JSON Schemas of some answers and of their parts, by name."""
    _, schemas = msgspec.json.schema_components(answers, ref_template=ref_template)
    for answer in every_answer():
        if (schema := schemas.get(answer.__name__)) is not None:
            schema["description"] = getdoc(answer)
            for field, text in answer.descriptions.items():
                schema["properties"][field]["description"] = text
    return schemas
