"""How statements are taken out of a document."""

from __future__ import annotations

from tests.seeds.documents import DocumentStatement, read_statements, split_script

DOCUMENT = """# Queue

```sql
-- A comment; with a semicolon
CREATE TABLE a (b text DEFAULT ';');

SELECT cron.schedule('clean', '*/5 * * * *', $$
  -- every now and then
  DELETE FROM a;
  UPDATE a SET b = 'x';
$$);
```

1. Claim:
    ```sql
    UPDATE a SET b = :name
    RETURNING *;
    ```

```typescript
await pool.query(
  `UPDATE ${this.table} SET b = $1;`, [1]);
log(`finished ${name}`);
```

```bash
npm run deploy
```
"""


def test_statements_of_all_blocks_are_found_in_their_order() -> None:
    assert read_statements(DOCUMENT) == [
        DocumentStatement("CREATE TABLE a (b text DEFAULT ';')", 3),
        DocumentStatement("DELETE FROM a", 3, "clean"),
        DocumentStatement("UPDATE a SET b = 'x'", 3, "clean"),
        DocumentStatement("UPDATE a SET b = :name\n    RETURNING *", 15),
        DocumentStatement("UPDATE ${this.table} SET b = $1", 20),
    ]


def test_semicolons_in_texts_names_and_comments_end_nothing() -> None:
    assert split_script("select ';', \"a;b\", $x$;$x$ -- ;\n; select 'it''s;'") == [
        "select ';', \"a;b\", $x$;$x$",
        "select 'it''s;'",
    ]
