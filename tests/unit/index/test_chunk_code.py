"""Code is cut at its definitions, each with its qualified name and what stands before it."""

from __future__ import annotations

import textwrap

import pytest

from windrow.index.chunk import Chunk, Limits, chunk

TINY = Limits(target=110, largest=190, small=20)


def cut(code: str, language: str, limits: Limits = TINY) -> dict[tuple[str, ...], Chunk]:
    return {
        piece.headings: piece
        for piece in chunk(textwrap.dedent(code), language=language, limits=limits)
    }


def test_python_keeps_decorators_and_comments_with_what_they_are_for() -> None:
    found = cut(
        '''
        import os

        # How many there are.
        COUNT = 3


        # Says hello,
        # and means it.
        @decorated
        @twice("a", "b")
        def hello(name):
            return f"hello {name}, how are you today?"


        class Café:
            """A place of some size, where people sit and talk."""

            size = 3

            @property
            def open(self):
                # Always open, at all hours of the day and of the night.
                return True

            async def serve(self, what):
                return await self.kitchen.make(what, in_a_hurry=False)
        ''',
        "python",
    )

    assert list(found) == [
        (),
        ("hello",),
        ("Café",),
        ("Café", "open"),
        ("Café", "serve"),
    ]
    assert found["hello",].text.startswith("# Says hello,\n# and means it.\n@decorated")
    assert found["Café", "open"].text.startswith("    @property\n    def open")


CODE: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "typescript": (
        """
        import x from 'y';

        /** What it is. */
        @Injectable()
        export abstract class Store<T> extends Base {
          private rows: T[] = [];

          // Finds one of them by its name, which must not be empty at all.
          @Get('one')
          async find(name: string): Promise<T> { return this.rows.find(r => r.name === name); }
          get size(): number { return this.rows.length + this.others.length + this.more.length; }
        }

        export const load = async (url: string) => { const r = await fetch(url); return r.json(); };

        export interface Row { name: string; size: number; made: Date; changed: Date; by: string }
        """,
        [("Store",), ("Store", "find"), ("Store", "size"), ("load",), ("Row",)],
    ),
    "javascript": (
        """
        export default class App {
          render() { return h('div', this.props.children, this.props.title, 'and something more'); }
          close() { this.element.remove(); this.listeners.forEach(stop => stop()); return this; } }
        module.exports.start = function () { return new App().render().then(() => listen(8080)); };
        """,
        [("App",), ("App", "render"), ("App", "close"), ("module.exports.start",)],
    ),
    "go": (
        """
        package main

        // Server answers, on one port and for a long time, until it is told to stop it.
        type Server[T any] struct { port int; store T; handlers map[string]func(T) error }

        // Run is what it does, again and again.
        func (s *Server[T]) Run(ctx context.Context) error { return s.listen(ctx, s.port, true) }

        func main() { if err := new(Server[int]).Run(context.TODO()); err != nil { panic(err) } }
        """,
        [("Server",), ("Server", "Run"), ("main",)],
    ),
    "rust": (
        """
        /// A point somewhere, of which there are many.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Point { pub x: i32, pub y: i32 }

        impl fmt::Display for Point {
            /// As people write it.
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { write!(f, "({}, 0)", self.x) }

            #[inline]
            fn other(&self) -> i32 { self.x.wrapping_mul(31).wrapping_add(self.y).count_ones() }
        }

        pub trait Shape { fn area(&self) -> f64; fn name(&self) -> String { "shape".to_owned() } }
        """,
        [("Point",), ("Point", "fmt"), ("Point", "other"), ("Shape",)],
    ),
    "java": (
        """
        package a.b;

        /** What it is. */
        @Service
        public class Store implements Base {
            private final Map<String, Row> rows = new HashMap<>();

            /** Finds one. */
            @Override
            public Row find(String name) { return rows.get(name.strip().toLowerCase(Locale.ROOT)); }

            public Store(Map<String, Row> rows) { this.rows.putAll(rows); this.size = rows.size(); }

            record Row(String name, int size) { Row { if (size < 0) throw new Error("no size"); } }
        }
        """,
        [("Store",), ("Store", "find"), ("Store", "Store"), ("Store", "Row")],
    ),
    "c": (
        """
        #ifndef A_H
        #define A_H
        /* A row of the table,
           and what it says. */
        typedef struct row { int size; char *name; struct row *next; struct row *last; } row_t;

        static struct row *find(struct row *rows, const char *name) { while (rows) rows++; }

        int main(int argc, char **argv) { struct row *r = find(all, argv[1]); return r ? 0 : argc; }
        #endif
        """,
        [("row_t",), ("find",), ("main",)],
    ),
    "cpp": (
        """
        namespace store {
        // One of many.
        template <typename T> class Table : public Base<T> {
         public:
          const T* find(const std::string& name) const { return rows_.at(name).second.get(); }
          ~Table() { for (auto& row : rows_) { row.second.reset(); } rows_.clear(); count_ = 0; }
        };
        }  // namespace store, where it ends

        int store::Other::count(const char* what) const { return what ? strlen(what) : -1; }
        """,
        [
            ("store", "Table", "find"),
            ("store", "Table", "~Table"),
            ("store::Other::count",),
        ],
    ),
    "ruby": (
        """
        module Shop
          # A cart of things that somebody wants to buy, or that they only look at.
          class Cart < Base
            # Puts something in.
            def add(thing, count = 1) = things.push(*([thing] * count)).tap { |all| all.compact! }
            def self.open(path) = new(JSON.parse(File.read(path), symbolize_names: true)[:things])
          end
        end
        """,
        [("Shop", "Cart"), ("Shop", "Cart", "add"), ("Shop", "Cart", "open")],
    ),
}


@pytest.mark.parametrize("language", CODE)
def test_definitions_have_their_qualified_names(language: str) -> None:
    code, names = CODE[language]

    found = cut(code, language)

    assert [name for name in found if name in names] == names


@pytest.mark.parametrize(
    ("language", "name", "beginning"),
    [
        ("typescript", ("Store", "find"), "  // Finds one"),
        ("typescript", ("load",), "export const load"),
        ("go", ("Server", "Run"), "// Run is what"),
        ("rust", ("Point", "other"), "    #[inline]"),
        ("rust", ("Point", "fmt"), "    /// As people"),
        ("java", ("Store", "find"), "    /** Finds one"),
        ("c", ("row_t",), "/* A row of the table,\n"),
    ],
)
def test_what_stands_before_a_definition_goes_with_it(
    language: str, name: tuple[str, ...], beginning: str
) -> None:
    assert cut(CODE[language][0], language)[name].text.startswith(beginning)


def test_a_function_too_large_for_a_chunk_is_cut_at_its_lines() -> None:
    code = "def large():\n" + "".join(f"    value_{n} = {n} * 1000\n" for n in range(60))

    found = chunk(code, language="python", limits=Limits(target=300, largest=400, small=50))

    assert len(found) > 3
    assert {piece.headings for piece in found} == {("large",)}
    assert all(piece.text.startswith(("def", "    value_")) for piece in found)


def test_small_siblings_are_joined() -> None:
    code = "\n\n".join(f"def f{n}():\n    return {n}" for n in range(8))

    [piece] = chunk(code, language="python")

    assert piece.headings == ()


def test_broken_code_is_cut_as_far_as_it_is_understood() -> None:
    whole = "def whole():\n    return 'something of some length, to stand alone'\n"
    broken = f"import (\n\n{whole}\n<<<<<<< ours\n{whole}"

    found = chunk(broken, language="python", limits=TINY)

    assert sum(piece.text.count("def whole") for piece in found) == 2
    assert any("whole" in piece.headings for piece in found)


def test_code_nested_deeper_than_anybody_reads_is_cut_all_the_same() -> None:
    depth = 400
    code = "".join(f"{' ' * n}class C{n}:\n" for n in range(depth)) + " " * depth + "x = 1\n"

    found = chunk(code, language="python")

    assert "".join(piece.text for piece in found).count("class C") == depth
