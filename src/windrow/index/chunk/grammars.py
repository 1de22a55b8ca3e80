"""The grammars there are, and what of their nodes a reader would call a definition.

A language is a name here, a wheel with its grammar, and its nodes in the sets below: these hold
those of all languages together, as the same word means the same thing wherever it is used.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Language

# Language -> the module with its grammar and the function there that gives it.
GRAMMARS: Final[dict[str, tuple[str, str]]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}

ALIASES: Final[dict[str, str]] = {
    "c#": "csharp",
    "c++": "cpp",
    "cc": "cpp",
    "cs": "csharp",
    "cxx": "cpp",
    "golang": "go",
    "h": "cpp",
    "hpp": "cpp",
    "javascriptreact": "javascript",
    "js": "javascript",
    "jsx": "javascript",
    "kt": "kotlin",
    "mjs": "javascript",
    "py": "python",
    "pyi": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "ts": "typescript",
    "typescriptreact": "tsx",
    "zsh": "bash",
}

# Definitions that others may be in: one too large for a chunk is taken apart.
CONTAINERS: Final = frozenset(
    [
        "abstract_class_declaration",
        "annotation_type_declaration",
        "class",
        "class_declaration",
        "class_definition",
        "class_specifier",
        "companion_object",
        "enum_declaration",
        "enum_definition",
        "extension_definition",
        "file_scoped_namespace_declaration",
        "impl_item",
        "interface_declaration",
        "internal_module",
        "mod_item",
        "module",
        "namespace_declaration",
        "namespace_definition",
        "object_declaration",
        "object_definition",
        "protocol_declaration",
        "record_declaration",
        "singleton_class",
        "struct_declaration",
        "struct_specifier",
        "trait_declaration",
        "trait_definition",
        "trait_item",
        "union_specifier",
    ]
)

DEFINITIONS: Final = CONTAINERS | frozenset(
    [
        "constructor_declaration",
        "delegate_declaration",
        "destructor_declaration",
        "enum_item",
        "enum_specifier",
        "function_declaration",
        "function_definition",
        "function_item",
        "function_signature",
        "function_signature_item",
        "generator_function_declaration",
        "init_declaration",
        "macro_definition",
        "method",
        "method_declaration",
        "method_definition",
        "method_signature",
        "operator_declaration",
        "protocol_function_declaration",
        "secondary_constructor",
        "singleton_method",
        "struct_item",
        "type_alias_declaration",
        "type_declaration",
        "type_definition",
        "type_item",
        "union_item",
    ]
)

# What stands around definitions without being one: looked through.
TRANSPARENT: Final = frozenset(
    [
        "ERROR",
        "declaration_list",
        "linkage_specification",
        "preproc_elif",
        "preproc_else",
        "preproc_if",
        "preproc_ifdef",
    ]
)

# What belongs to the definition it is written around: the definition inside gives the name.
WRAPPERS: Final = frozenset(
    [
        "ambient_declaration",
        "decorated_definition",
        "export_statement",
        "expression_statement",
        "lexical_declaration",
        "template_declaration",
        "variable_declaration",
    ]
)

# What stands before a definition and belongs to it.
LEADING: Final = frozenset(
    [
        "annotation",
        "attribute_item",
        "attribute_list",
        "block_comment",
        "comment",
        "decorator",
        "inner_attribute_item",
        "line_comment",
        "multiline_comment",
    ]
)


def grammar_name(language: str) -> str | None:
    """The name of a language's grammar; None if there is none."""
    name = ALIASES.get(language, language)
    return name if name in GRAMMARS else None


@cache
def load(name: str) -> Language:
    """The grammar of this name, read once: it can be used by many parsers."""
    from tree_sitter import Language

    module, function = GRAMMARS[name]
    return Language(getattr(importlib.import_module(module), function)())
