"""What a file is: by its name, and where that says nothing or something wrong, by how it begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os.path import splitext
from typing import Final, Literal

FileType = Literal["code", "document", "config", "data", "text", "binary"]

HEAD_BYTES: Final = 8_192

_CODE: Final = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hh .hpp .hxx .ipp",
    "csharp": ".cs",
    "ruby": ".rb .rake",
    "php": ".php",
    "swift": ".swift",
    "kotlin": ".kt .kts",
    "scala": ".scala .sc",
    "bash": ".sh .bash .zsh",
    "powershell": ".ps1 .psm1",
    "sql": ".sql",
    "lua": ".lua",
    "perl": ".pl .pm",
    "r": ".r",
    "julia": ".jl",
    "haskell": ".hs",
    "elixir": ".ex .exs",
    "erlang": ".erl .hrl",
    "clojure": ".clj .cljs",
    "dart": ".dart",
    "zig": ".zig",
    "css": ".css .scss .less",
    "vue": ".vue",
    "svelte": ".svelte",
    "protobuf": ".proto",
    "graphql": ".graphql .gql",
    "cmake": ".cmake",
    "make": ".mk",
    "hcl": ".tf .hcl",
    "nix": ".nix",
}
_CONFIG: Final = {
    "json": ".json .jsonc .json5",
    "yaml": ".yaml .yml",
    "toml": ".toml",
    "ini": ".ini .cfg .cnf .conf .properties .editorconfig .env",
    "xml": ".xml .xsd .xsl .plist .config",
}
_DOCUMENT: Final = {
    "markdown": ".md .markdown .mdx",
    "rst": ".rst",
    "asciidoc": ".adoc .asciidoc",
    "html": ".html .htm .xhtml",
    "tex": ".tex",
    "pdf": ".pdf",
    "office": ".docx .xlsx .pptx .doc .xls .ppt .odt .ods .epub .rtf .eml",
    "notebook": ".ipynb",
}
_DATA: Final = {"csv": ".csv .tsv", "json": ".jsonl .ndjson", "xml": ".svg"}
_BINARY: Final = {
    "pictures": ".png .jpg .jpeg .gif .webp .bmp .ico .tif .tiff .heic .avif .psd .xcf",
    "sound and film": ".mp3 .wav .flac .ogg .m4a .mp4 .mkv .avi .mov .webm",
    "archives": ".zip .gz .bz2 .xz .zst .7z .rar .tar .tgz .jar .war .whl .egg .iso .dmg .deb .rpm",
    "programs": ".so .dylib .dll .exe .bin .o .a .lib .obj .class .wasm .pyd .pdb .apk .img",
    "fonts": ".ttf .otf .woff .woff2 .eot",
    "data": ".db .sqlite .sqlite3 .parquet .arrow .npy .npz .pkl .pickle .h5 .hdf5 .pack .idx .mo",
    "models": ".pt .pth .onnx .safetensors .gguf",
    "editors": ".swp",
}
_BY_NAME: Final[dict[str, tuple[FileType, str]]] = {
    "makefile": ("code", "make"),
    "gnumakefile": ("code", "make"),
    "dockerfile": ("code", "dockerfile"),
    "containerfile": ("code", "dockerfile"),
    "cmakelists.txt": ("code", "cmake"),
    "rakefile": ("code", "ruby"),
    "gemfile": ("code", "ruby"),
    "jenkinsfile": ("code", "groovy"),
    "go.mod": ("config", "gomod"),
    ".gitignore": ("config", "gitignore"),
    ".windrowignore": ("config", "gitignore"),
}
_INTERPRETERS: Final = {
    "python": "python",
    "node": "javascript",
    "deno": "typescript",
    "bash": "bash",
    "sh": "bash",
    "zsh": "bash",
    "dash": "bash",
    "ruby": "ruby",
    "perl": "perl",
    "php": "php",
    "lua": "lua",
    "rscript": "r",
}
_SHEBANG: Final = re.compile(rb"#!\s*\S*?/?(?:env\s+(?:-\S+\s+)*)?([A-Za-z]+)[\d.]*(?:\s|$)")
# What begins like this is no text, whatever its name.
_MAGIC: Final = (
    b"\x7fELF",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"\x1f\x8b\x08",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"SQLite format 3\x00",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"MZ\x90",
    b"OggS",
    b"fLaC",
    b"ID3",
    b"RIFF",
    b"wOFF",
    b"wOF2",
    b"\x00asm",
    b"!<arch>\n",
)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
# Control characters that no text has; of bytes that are no UTF-8 a few may be of old encodings.
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Described:
    type: FileType
    language: str | None = None
    content_type: str = "text/plain"


def _by_extension() -> dict[str, Described]:
    tables: tuple[tuple[FileType, dict[str, str]], ...] = (
        ("code", _CODE),
        ("config", _CONFIG),
        ("document", _DOCUMENT),
        ("data", _DATA),
    )
    content_types = {
        "markdown": "text/markdown",
        "html": "text/html",
        "pdf": "application/pdf",
        "office": "application/octet-stream",  # which one it is, is seen by its bytes
        "notebook": "application/x-ipynb+json",
    }
    return {
        extension: Described(type_, language, content_types.get(language, "text/plain"))
        for type_, languages in tables
        for language, extensions in languages.items()
        for extension in extensions.split()
    }


_EXTENSIONS: Final = _by_extension()
_BINARY_EXTENSIONS: Final = frozenset(" ".join(_BINARY.values()).split())


def is_binary_name(name: str) -> bool:
    """Whether a name is of files that have no text, so that they need not be opened."""
    return splitext(name)[1].lower() in _BINARY_EXTENSIONS


def describe(name: str, head: bytes) -> Described:
    """What a file with this name is, whose content begins with these bytes."""
    extension = splitext(name)[1].lower()
    if head.startswith(b"%PDF-"):
        return Described("document", "pdf", "application/pdf")
    known = _EXTENSIONS.get(extension)
    if known is not None and known.language == "office" and not _is_plain(head):
        return known
    if extension in _BINARY_EXTENSIONS or is_binary(head):
        return Described("binary", None, "application/octet-stream")
    if named := _BY_NAME.get(name.rpartition("/")[2].lower()):
        return Described(*named)
    if known is not None and known.language not in ("pdf", "office"):
        return known
    if (found := _SHEBANG.match(head)) is not None:
        language = _INTERPRETERS.get(found[1].decode("ascii").lower())
        if language is not None:
            return Described("code", language)
    return Described("text")


def is_binary(head: bytes) -> bool:
    """Whether bytes are no text in any encoding that people write text in."""
    if head.startswith(_MAGIC):
        return True
    if head.startswith(_UTF16):
        return False
    if b"\x00" in head:
        return not _is_plain_utf16(head)
    controls = len(_CONTROLS.findall(head))
    return controls > len(head) * _MOST_CONTROLS


def _is_plain(head: bytes) -> bool:
    return not is_binary(head) and not head.startswith((b"PK\x03\x04", b"{\\rtf"))


def _is_plain_utf16(head: bytes) -> bool:
    """Latin text of two bytes each, without a mark: every other byte is nothing."""
    if len(head) < 4:
        return False
    even, odd = head[::2], head[1::2]
    return (not any(odd) and 0 not in even) or (not any(even) and 0 not in odd)
