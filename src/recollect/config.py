"""The user's settings: one YAML file of their own, with the environment over it; never a file of the project worked on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

import msgspec

from recollect.errors import ConfigError
from recollect.settings import EmbeddingUse, ModelUse, Section, Settings, fields, model_uses, turns_due

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recollect.settings import Embeddings

_CONFIG_BYTES_MAX = 1_000_000
_NEO4J_VARIABLES = {
    "user": ("RECOLLECT_NEO4J_USER", "NEO4J_USERNAME"),
    "password": ("RECOLLECT_NEO4J_PASSWORD", "NEO4J_PASSWORD"),
}


def config_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the user's file is looked for: `RECOLLECT_CONFIG`, else the platform's own place."""
    env = os.environ if environment is None else environment
    named = env.get("RECOLLECT_CONFIG")
    return Path(named).expanduser() if named else _platform_folder(env, "config") / "config.yaml"


def default_store(environment: Mapping[str, str] | None = None) -> str:
    """Return the store that is used when none is named."""
    env = os.environ if environment is None else environment
    return f"sqlite://{_platform_folder(env, 'data') / 'memory.db'}"


def _platform_folder(env: Mapping[str, str], kind: Literal["config", "data"]) -> Path:
    home = Path(env.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "recollect"
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local") / "recollect"
    variable, default = ("XDG_CONFIG_HOME", ".config") if kind == "config" else ("XDG_DATA_HOME", ".local/share")
    return Path(env.get(variable) or home / default) / "recollect"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the user's file, if there is one, and put the environment over it."""
    env = os.environ if environment is None else environment
    path = config_path(env)
    values = read_values(path, is_named=bool(env.get("RECOLLECT_CONFIG")))
    for name in ("store", "workspace"):
        if env.get(f"RECOLLECT_{name.upper()}"):
            values[name] = env[f"RECOLLECT_{name.upper()}"]
    for name, variables in _NEO4J_VARIABLES.items():
        given = next((env[variable] for variable in variables if env.get(variable)), None)
        section = values.get("neo4j", {})
        if given is not None and isinstance(section, dict):
            values["neo4j"] = {**cast("dict[str, Any]", section), name: given}
    settings = settings_from(values, str(path))
    return settings if settings.store else msgspec.structs.replace(settings, store=default_store(env))


def read_values(path: Path, *, is_named: bool) -> dict[str, Any]:
    """Return what a YAML file says; one that is not there says nothing, unless it was named."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if is_named:
            msg = f"there is no configuration {path}, which was named (by RECOLLECT_CONFIG, or a program)"
            raise ConfigError(msg) from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the configuration {path}: {error}"
        raise ConfigError(msg) from error
    if len(text) > _CONFIG_BYTES_MAX:
        msg = f"the configuration {path} has more than {_CONFIG_BYTES_MAX:,} bytes: it is probably another file"
        raise ConfigError(msg)
    import yaml  # noqa: PLC0415  only those who have a file pay for reading it

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        msg = f"the configuration {path} is not YAML: {' '.join(str(error).split())[:200]}"
        raise ConfigError(msg) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        msg = f"the configuration {path} is not a mapping of settings but {type(values).__name__}"
        raise ConfigError(msg)
    return cast("dict[str, Any]", values)


def settings_from(values: Mapping[str, Any], source: str = "the settings") -> Settings:
    """Check plain values; an unknown key is an error that names the nearest known one."""
    _refuse_unknown(values, Settings, "", source)
    try:
        settings = msgspec.convert(dict(values), Settings)
    except msgspec.ValidationError as error:
        msg = f"in {source}: {error}{_choices(values, Settings)}"
        raise ConfigError(msg) from error
    if settings.agent.memory.persistence.type == "neo4j" and not settings.store.startswith(("neo4j", "bolt")):
        msg = f"in {source}: agent.memory.persistence.type is neo4j, but store names no Neo4j server: set it to neo4j://host:7687"
        raise ConfigError(msg)
    for wrong in _contradictions(settings):
        msg = f"in {source}: {wrong}"
        raise ConfigError(msg)
    return settings


def _choices(values: object, section: type[Section]) -> str:
    """Say what the first setting may be that is to be one of a few words and is another."""
    given = cast("dict[str, Any]", values) if isinstance(values, dict) else {}
    for name, hint, _, _ in fields(section):
        value = given.get(name)
        if isinstance(hint, type) and issubclass(hint, Section):
            if told := _choices(value, hint):
                return told
        elif get_origin(hint) is Literal and value is not None and value not in get_args(hint):
            return f": {str(value)[:40]!r} is none of {', '.join(map(str, get_args(hint)))}"
    return ""


def _contradictions(settings: Settings) -> Iterator[str]:
    """Yield what no single setting shows."""
    distill = settings.distill
    turns = turns_due(settings)
    if turns is not None and 1 < turns <= distill.keep_raw_turns:
        yield f"distill.every_turns is {turns}, of which distill.keep_raw_turns keeps {distill.keep_raw_turns} raw: raise it"
    for name, share in (("context_share", distill.context_share), ("fold_share", distill.fold_share)):
        if share is not None and int(share * distill.context_chars) < 1:
            yield f"distill.{name} of {share} is less than a character of distill.context_chars"
    for name, use in model_uses(settings):
        yield from _model_contradictions(name, use)
    compose = settings.compose
    shares = compose.goal + compose.constraints + compose.queries + compose.recent + compose.files + compose.code + compose.summaries
    if shares > 1:
        yield f"the shares of compose add up to {shares:.2f} of the budget: lower one, and leave something for what is relevant"
    yield from _embedding_contradictions(settings.models.embeddings, settings.agent.memory.embeddings)


def _model_contradictions(name: str, use: ModelUse) -> Iterator[str]:
    if use.name is None and use != ModelUse():
        yield f"models.{name} says how to reach a model and not which: give models.{name}.name"
    yield from _unreachable(name, use)
    if use.name is not None and use.endpoint is None and use.key_variable is None:
        yield f"models.{name} names neither an endpoint nor the key_variable of its provider: give one of them"


def _unreachable(name: str, use: ModelUse | EmbeddingUse) -> Iterator[str]:
    if use.endpoint is not None and not _is_address(use.endpoint):
        yield f"models.{name}.endpoint is {use.endpoint!r}, which is no http address such as http://localhost:11434/v1"
    if use.key_variable is not None and not (use.key_variable.isascii() and use.key_variable.isidentifier()):
        # what stands there may be the key itself, so it is not repeated
        yield f"models.{name}.key_variable is no name of an environment variable: give the name of the one that holds the key"


def _is_address(endpoint: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415  only those who name a model need it

    try:
        parts = urlsplit(endpoint)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return has_host and parts.scheme in {"http", "https"} and endpoint.isascii() and not any(one.isspace() for one in endpoint)


def _embedding_contradictions(use: EmbeddingUse, block: Embeddings) -> Iterator[str]:
    if use.name is None and use != EmbeddingUse():
        yield "models.embeddings says how to reach a model and not which: give models.embeddings.name"
    if use.name is not None and (use.endpoint is None or use.dimension is None):
        yield f"models.embeddings names {use.name!r} and not where it is or how long its vectors are: give endpoint and dimension"
    yield from _unreachable("embeddings", use)
    for key, own, other in (("model", block.model, use.name), ("dimension", block.dimension, use.dimension)):
        if use.name is not None and own is not None and own != other:
            yield f"agent.memory.embeddings.{key} is {own!r} and models.embeddings says {other!r}: they name one model, so leave one out"


def _refuse_unknown(values: object, section: type[Section], path: str, source: str) -> None:
    if not isinstance(values, dict):
        return
    known = {name: hint for name, hint, _, _ in fields(section)}
    for key, value in cast("dict[object, Any]", values).items():
        if key not in known:
            from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it

            nearest = get_close_matches(str(key), known, n=1, cutoff=0.0)
            msg = f"in {source}: there is no setting {path}{key}; did you mean {path}{nearest[0] if nearest else next(iter(known))}?"
            raise ConfigError(msg)
        hint = known[str(key)]
        if isinstance(hint, type) and issubclass(hint, Section):
            _refuse_unknown(value, hint, f"{path}{key}.", source)
        elif get_origin(hint) is dict and isinstance(value, dict):
            for name, inner in cast("dict[object, Any]", value).items():
                _refuse_unknown(inner, get_args(hint)[1], f"{path}{key}.{name}.", source)
