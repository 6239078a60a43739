"""Which languages are read, and which nodes of their grammars define something; a table, without any effect.

The grammars are those `ast-grep-py` carries. It panics on a language it does not know, so only names of this table may
reach it. A `Shape` says how one kind of node is read (`definitions`), a pattern finds the names of plain statements.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SymbolKind = Literal["function", "method", "class", "interface", "struct", "enum", "trait", "module", "type", "variable"]
Comments = Literal["slashes", "hash", "dashes"]
Reading = Literal[
    "name",  # a field, or the first identifier among the children
    "declarator",  # the end of a chain of C declarators
    "typedef",  # as above; an anonymous struct or enum takes the name
    "macro",  # a name with a value
    "receiver",  # a Go method, owned by its receiver's type
    "go_type",  # what stands right of the name decides the kind
    "keyword",  # the word before the name decides the kind
    "lent",  # no symbol: lends the name of its type to what is inside
    "field",  # a JavaScript class field: a method when it holds a function
    "variable",  # a JavaScript declarator: what its value is
    "assignment",  # `exports.name = function`
    "pattern",  # a statement whose text the language's pattern reads
    "closed",  # no symbol, and nothing inside is one
]


class Shape(msgspec.Struct, frozen=True):
    """How nodes of one kind are read."""

    kind: SymbolKind = "variable"
    reading: Reading = "name"
    field: str = "name"
    needs_body: bool = False  # without a body it is a mention
    needs_owner: bool = False  # a method of no named type is left out
    spans: bool = False  # without a body it names what follows, to the end of the file
    owns: bool = False  # functions inside are methods, though it is a module


class Language(msgspec.Struct, frozen=True):
    """One language: its files, the nodes that define symbols at any depth, and the statements that do at module level."""

    name: str
    extensions: tuple[str, ...]
    shapes: dict[str, Shape]
    comments: Comments = "slashes"
    wrappers: tuple[str, ...] = ()  # nodes that belong to the one definition they hold: decorators, `export`, `template`
    statements: dict[str, Shape] = {}
    pattern: str = ""
    through: tuple[str, ...] = ()  # nodes whose statements are at module level too
    bodies: tuple[str, ...] = ()  # kinds of bodies, where the grammar has no field for them
    closing: str = ""  # the word that closes a definition without a body
    walked: tuple[str, ...] = ()  # kinds of types whose bodies hold statements of interest


_FUNCTION = Shape("function")
_METHOD = Shape("method")
_OWNED = Shape("method", needs_owner=True)
_CLASS = Shape("class")
_INTERFACE = Shape("interface")
_ENUM = Shape("enum")
_TRAIT = Shape("trait")
_TYPE = Shape("type")
_MODULE = Shape("module")
_PATTERN = Shape("variable", "pattern")
_CLOSED = Shape(reading="closed")

_JAVASCRIPT: dict[str, Shape] = {
    "function_declaration": _FUNCTION,
    "generator_function_declaration": _FUNCTION,
    "class_declaration": _CLASS,
    "method_definition": _OWNED,
}
_TYPESCRIPT: dict[str, Shape] = {
    **_JAVASCRIPT,
    "abstract_class_declaration": _CLASS,
    "interface_declaration": _INTERFACE,
    "type_alias_declaration": _TYPE,
    "enum_declaration": _ENUM,
    "internal_module": _MODULE,
    "module": _MODULE,
    "function_signature": _FUNCTION,
    "method_signature": _OWNED,
    "abstract_method_signature": _OWNED,
    "public_field_definition": Shape("method", "field"),
}
_JAVASCRIPT_STATEMENTS: dict[str, Shape] = {
    "lexical_declaration": Shape(reading="variable"),
    "variable_declaration": Shape(reading="variable"),
    "expression_statement": Shape("function", "assignment"),
}
_C: dict[str, Shape] = {
    "function_definition": Shape("function", "declarator"),
    "struct_specifier": Shape("struct", needs_body=True),
    "union_specifier": Shape("struct", needs_body=True),
    "enum_specifier": Shape("enum", needs_body=True),
    "type_definition": Shape("type", "typedef"),
    "preproc_function_def": _FUNCTION,
    "preproc_def": Shape("variable", "macro"),
}
_C_THROUGH = ("preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "linkage_specification", "declaration_list")

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(
            "python",
            (".py", ".pyi", ".pyw"),
            {"function_definition": _FUNCTION, "class_definition": _CLASS},
            comments="hash",
            wrappers=("decorated_definition",),
            statements={"expression_statement": _PATTERN, "type_alias_statement": Shape("type", "pattern")},
            pattern=r"\A(?:type\s+)?(?P<name>[^\W\d]\w*)\s*(?:\[[^\]]*\]\s*)?(?::(?!=)|=(?!=))",
        ),
        Language(
            "javascript",
            (".js", ".jsx", ".mjs", ".cjs"),
            {**_JAVASCRIPT, "field_definition": Shape("method", "field", field="property")},
            wrappers=("export_statement",),
            statements=_JAVASCRIPT_STATEMENTS,
        ),
        Language(
            "typescript",
            (".ts", ".mts", ".cts"),
            _TYPESCRIPT,
            wrappers=("export_statement", "ambient_declaration"),
            statements=_JAVASCRIPT_STATEMENTS,
        ),
        Language(
            "tsx",
            (".tsx",),
            _TYPESCRIPT,
            wrappers=("export_statement", "ambient_declaration"),
            statements=_JAVASCRIPT_STATEMENTS,
        ),
        Language(
            "go",
            (".go",),
            {
                "function_declaration": _FUNCTION,
                "method_declaration": Shape("method", "receiver"),
                "method_elem": _METHOD,
                "type_spec": Shape("type", "go_type"),
                "type_alias": _TYPE,
                "const_spec": Shape("variable"),
                "var_spec": Shape("variable"),
            },
            wrappers=("type_declaration", "const_declaration", "var_declaration"),
        ),
        Language(
            "rust",
            (".rs",),
            {
                "function_item": _FUNCTION,
                "function_signature_item": _FUNCTION,
                "struct_item": Shape("struct"),
                "union_item": Shape("struct"),
                "enum_item": _ENUM,
                "trait_item": _TRAIT,
                "impl_item": Shape(reading="lent", field="type"),
                "mod_item": Shape("module", needs_body=True),
                "type_item": _TYPE,
                "const_item": Shape("variable"),
                "static_item": Shape("variable"),
                "macro_definition": _FUNCTION,
            },
        ),
        Language(
            "java",
            (".java",),
            {
                "class_declaration": _CLASS,
                "record_declaration": _CLASS,
                "interface_declaration": _INTERFACE,
                "annotation_type_declaration": _INTERFACE,
                "enum_declaration": _ENUM,
                "method_declaration": _METHOD,
                "constructor_declaration": _METHOD,
                "compact_constructor_declaration": _METHOD,
                "field_declaration": _CLOSED,
            },
        ),
        Language(
            "c",
            (".c", ".h"),
            _C,
            statements={"declaration": Shape(reading="declarator")},
            through=_C_THROUGH,
        ),
        Language(
            "cpp",
            (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"),
            {
                **_C,
                "class_specifier": Shape("class", needs_body=True),
                "namespace_definition": _MODULE,
                "alias_declaration": _TYPE,
                "concept_definition": _TYPE,
            },
            wrappers=("template_declaration",),
            statements={"declaration": Shape(reading="declarator"), "field_declaration": Shape(reading="declarator")},
            through=_C_THROUGH,
            walked=("class", "struct"),
        ),
        Language(
            "csharp",
            (".cs",),
            {
                "namespace_declaration": _MODULE,
                "file_scoped_namespace_declaration": Shape("module", spans=True),
                "class_declaration": _CLASS,
                "record_declaration": _CLASS,
                "struct_declaration": Shape("struct"),
                "interface_declaration": _INTERFACE,
                "enum_declaration": _ENUM,
                "delegate_declaration": _TYPE,
                "method_declaration": _METHOD,
                "constructor_declaration": _METHOD,
            },
        ),
        Language(
            "ruby",
            (".rb", ".rake"),
            {
                "module": Shape("module", owns=True),
                "class": _CLASS,
                "method": _FUNCTION,
                "singleton_method": _METHOD,
            },
            comments="hash",
            statements={"assignment": _PATTERN},
            pattern=r"\A(?P<name>[A-Z]\w*)\s*=(?![=~])",
            closing="end",
        ),
        Language(
            "php",
            (".php",),
            {
                "namespace_definition": Shape("module", spans=True),
                "class_declaration": _CLASS,
                "interface_declaration": _INTERFACE,
                "trait_declaration": _TRAIT,
                "enum_declaration": _ENUM,
                "function_definition": _FUNCTION,
                "method_declaration": _METHOD,
            },
            statements={"const_declaration": _PATTERN},
            pattern=r"\Aconst\s+(?P<name>\w+)\s*=",
        ),
        Language(
            "kotlin",
            (".kt", ".kts"),
            {
                "class_declaration": Shape("class", "keyword"),
                "object_declaration": _CLASS,
                "companion_object": Shape(reading="lent"),
                "function_declaration": _FUNCTION,
                "type_alias": _TYPE,
            },
            statements={"property_declaration": _PATTERN},
            pattern=r"\b(?:val|var)\s+(?:<[^>]*>\s*)?(?:[\w?]+\.)?(?P<name>\w+)",
            bodies=("class_body", "enum_class_body", "function_body"),
        ),
        Language(
            "swift",
            (".swift",),
            {
                "class_declaration": Shape("class", "keyword"),
                "protocol_declaration": _TRAIT,
                "function_declaration": _FUNCTION,
                "protocol_function_declaration": _METHOD,
                "init_declaration": _METHOD,
                "typealias_declaration": _TYPE,
            },
            statements={"property_declaration": _PATTERN},
            pattern=r"\b(?:let|var)\s+(?P<name>\w+)",
        ),
        Language(
            "scala",
            (".scala", ".sc"),
            {
                "class_definition": _CLASS,
                "object_definition": _CLASS,
                "package_object": _MODULE,
                "trait_definition": _TRAIT,
                "enum_definition": _ENUM,
                "function_definition": _FUNCTION,
                "function_declaration": _FUNCTION,
                "type_definition": _TYPE,
            },
            statements={"val_definition": _PATTERN, "var_definition": _PATTERN},
            pattern=r"\b(?:val|var)\s+(?P<name>\w+)",
        ),
        Language(
            "lua",
            (".lua",),
            {"function_declaration": _FUNCTION},
            comments="dashes",
            statements={"variable_declaration": _PATTERN, "assignment_statement": _PATTERN},
            pattern=r"\A(?:local\s+)?(?P<name>[\w.:]+)\s*(?:<\w+>\s*)?(?:,[^=]*)?=\s*(?P<function>function\b)?",
            closing="end",
        ),
        Language(
            "bash",
            (".sh", ".bash"),
            {"function_definition": _FUNCTION},
            comments="hash",
            statements={"variable_assignment": _PATTERN, "declaration_command": _PATTERN},
            pattern=r"\A(?:(?:export|readonly|declare|typeset)\s+(?:-\w+\s+)*)?(?P<name>\w+)=",
        ),
    )
}
_BY_EXTENSION = {extension: language.name for language in LANGUAGES.values() for extension in language.extensions}


def language_of(path: str) -> str | None:
    """Return the name of the language of a file by its extension, None when it is not read."""
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    return _BY_EXTENSION.get(dot + extension.lower()) if stem else None
