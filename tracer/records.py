"""``dataclass`` as the standard library has it, made in a third of the time.

A command reads a hundred classes before it does anything. The standard decorator compiles up to six methods for each of
them; here only ``__init__`` is compiled, and the other methods, which are alike in all classes, are shared. The classes
stay dataclasses: ``fields``, ``replace``, ``asdict`` and type checkers treat them as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter

    _MISSING = dataclasses.MISSING

    def dataclass(
        cls: type | None = None,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
    ) -> Any:
        """Make a class a dataclass; the options mean what they mean in the standard library."""

        def make(plain: type) -> type:
            if order:
                return dataclasses.dataclass(plain, frozen=frozen, slots=slots, eq=eq, order=order)
            own = set(plain.__dict__)
            if plain.__doc__ is None:  # else the decorator finds out the signature, only to write it there
                plain.__doc__ = plain.__name__
            made = dataclasses.dataclass(plain, init=False, repr=False, eq=False, slots=slots)
            fields = dataclasses.fields(made)
            made.__init__ = _initialiser(made, fields, frozen, slots)
            if "__repr__" not in own:
                made._repr_fields = tuple([field.name for field in fields if field.repr])
                made.__repr__ = _repr
            if eq:
                compared = [field.name for field in fields if field.compare]
                made._compared = staticmethod(_getter(compared))
                made.__eq__ = _eq
                made.__hash__ = _hash if frozen else None
            if frozen:
                made.__setattr__, made.__delattr__ = _refuse, _refuse
                made.__getstate__, made.__setstate__ = _get_state, _set_state
            return made

        return make if cls is None else make(cls)

    def _initialiser(cls: type, fields: tuple[Any, ...], frozen: bool, slots: bool) -> Callable[..., None]:
        """Compile the one method that differs from class to class in more than names.

        A frozen object is filled through its slots, which takes half the time of ``object.__setattr__``.
        """
        known: dict[str, Any] = {"_missing": _MISSING, "_set": object.__setattr__}
        parameters, lines = ["self"], []
        for field in fields:
            name, default = field.name, ""
            if field.default is not _MISSING:
                known[f"_default_{name}"], default = field.default, f"=_default_{name}"
            elif field.default_factory is not _MISSING:
                known[f"_make_{name}"], default = field.default_factory, "=_missing"
                lines.append(f" {name} = _make_{name}() if {name} is _missing else {name}")
            parameters.append(name + default)
            if frozen and slots:
                known[f"_set_{name}"] = getattr(cls, name).__set__
                lines.append(f" _set_{name}(self, {name})")
            else:
                lines.append(f" _set(self, {name!r}, {name})" if frozen else f" self.{name} = {name}")
        if hasattr(cls, "__post_init__"):
            lines.append(" self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), known)
        made = known["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return made

    def _getter(names: list[str]) -> Callable[[Any], Any]:
        return attrgetter(*names) if names else lambda _: ()

    def _repr(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self._repr_fields])
        return f"{type(self).__qualname__}({shown})"

    def _eq(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._compared(self) == self._compared(other)

    def _hash(self: Any) -> int:
        return hash(self._compared(self))

    def _refuse(self: Any, name: str, *_: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")

    def _get_state(self: Any) -> list[Any]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _set_state(self: Any, state: list[Any]) -> None:
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


__all__ = ["dataclass"]
