"""Stores: tables of others, several writers, transactions, bulk loads, and limits that are checked first."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

STORES = ("tests/search/test_stores.py",)
OTHERS = ("tests/search/test_stores_of_others.py",)
WRITERS = ("tests/search/test_stores_writers.py",)
EVERYDAY = ("tests/search/test_everyday_table.py",)
POSTGRES = ("tests/search/test_postgres.py",)
INTERRUPTED = ("tests/search/test_loading.py::test_an_interrupted_load_goes_on",)

MUTANTS = [
    Mutant(
        "threads that share a store run into each other",
        "search/stores/base.py",
        "            with self._lock:\n                self._upsert(Batch(codes, ids, values), replace)",
        "            self._upsert(Batch(codes, ids, values), replace)",
        WRITERS,
    ),
    Mutant(
        "a name that the engine would cut is taken",
        "search/stores/base.py",
        "if most_bytes is not None and size > most_bytes:",
        "if False:",
        (*OTHERS, *POSTGRES),
    ),
    Mutant(
        "an id of -1 reads as nothing found",
        "search/stores/base.py",
        "if self.id_type == INTEGER and not 0 <= item <= LARGEST_ID:",
        "if self.id_type == INTEGER and not -1 <= item <= LARGEST_ID:",
        (*POSTGRES, *OTHERS),
    ),
    Mutant(
        "memory is taken for a k beyond the number of rows",
        "search/stores/base.py",
        "            require_k(k, self._count())\n            if whole:",
        "            if whole:",
        (*STORES, *OTHERS),
    ),
    Mutant(
        "what changed before an error is saved all the same",
        "search/stores/base.py",
        "                self._close_after_error()\n",
        "                self._close()\n",
        (*WRITERS, *OTHERS),
    ),
    Mutant(
        "a table of another number of bits is opened",
        "search/stores/base.py",
        "        if n_bits != self.n_bits:",
        "        if False:",
        STORES,
    ),
    Mutant(
        "a table of the user's in an SQLite file is taken over",
        "search/stores/sqlite_vec.py",
        'if known is None or kind != "table" or not text.startswith("CREATE VIRTUAL TABLE"):',
        "if False:",
        OTHERS,
    ),
    Mutant(
        "tables in an SQLite file are told apart by case",
        "search/stores/sqlite_vec.py",
        "\"WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view', 'index')\",",
        "\"WHERE name = ? AND type IN ('table', 'view', 'index')\",",
        OTHERS,
    ),
    Mutant(
        "an upsert into SQLite that fails half-way is kept",
        "search/stores/sqlite_vec.py",
        "        with self._writing():\n            known = self._known(ids)",
        "        if True:\n            known = self._known(ids)",
        ("tests/search/test_stores.py::test_a_sqlite_upsert_that_fails_half_way_leaves_the_table_as_it_was",),
    ),
    Mutant(
        "a store that is refused leaves its traces in an SQLite file",
        "search/stores/sqlite_vec.py",
        "        with self._writing():\n            self._make_registry()",
        "        if True:\n            self._make_registry()",
        OTHERS,
    ),
    Mutant(
        "an upsert into PostgreSQL keeps the old code",
        "search/stores/postgres/merging.py",
        "{name} = EXCLUDED.{name}",
        "{name} = stored.{name}",
        STORES,
    ),
    Mutant(
        "a table of the user's in PostgreSQL without a key is taken",
        "search/stores/postgres/tables.py",
        "if key.fetchone() is None or not column.never_null:",
        "if False:",
        (*OTHERS, *POSTGRES),
    ),
    Mutant(
        "a view in PostgreSQL is taken for a table",
        "search/stores/postgres/tables.py",
        '    if kind not in "rp":',
        "    if False:",
        (*OTHERS, *POSTGRES),
    ),
    Mutant(
        "rows without a code are found in PostgreSQL",
        "search/stores/postgres/store.py",
        'WHERE {code} IS NOT NULL{where} "\n            "ORDER BY distance, {id}{ordered} LIMIT %s"',
        'WHERE TRUE{where} "\n            "ORDER BY distance, {id}{ordered} LIMIT %s"',
        POSTGRES,
    ),
    Mutant(
        "a usearch file is overwritten though another store has changed it",
        "search/stores/usearch.py",
        "if there is not None and there.mark != self._mark:",
        "if False:",
        WRITERS,
    ),
    Mutant(
        "any file is taken for a usearch file of ours",
        "search/stores/usearch_files.py",
        "if len(last) != ENDING.size or not last.startswith((MAGIC, MAGIC_WITH_MODEL, MAGIC_WITH_IDS)):",
        "if len(last) != ENDING.size:",
        OTHERS,
    ),
    Mutant(
        "a store takes codes of another model",
        "search/stores/base.py",
        "require_same_model(stored, self.model, self._described)",
        "pass",
        STORES,
    ),
    Mutant(
        "a usearch file forgets its model",
        "search/stores/usearch_files.py",
        "ENDING.pack(MAGIC if ending.model is None else MAGIC_WITH_MODEL, ending.n_bits, ending.mark)",
        "ENDING.pack(MAGIC, ending.n_bits, ending.mark)",
        STORES,
    ),
    Mutant(
        "SQLite files from before models had a place are refused",
        "search/stores/sqlite_vec.py",
        "coalesce(fields, '{{}}')",
        "fields",
        ("tests/search/test_stores_of_others.py::test_sqlite_files_from_before_models_had_a_place_are_opened",),
    ),
    Mutant(
        "two writers of a LanceDB table leave an id twice",
        "search/stores/lancedb.py",
        'pyarrow.field("id", kind, nullable=False, metadata=PRIMARY_KEY)',
        'pyarrow.field("id", kind, nullable=False, metadata={"x": "y"})',
        WRITERS,
    ),
    Mutant(
        "a LanceDB table with other columns is taken over",
        "search/stores/lancedb.py",
        'if not ours or not there.equals(_schema(int(n_bits), kind, known, None)) or not there.field("id").metadata:',
        "if False:",
        OTHERS,
    ),
    Mutant(
        "an upsert into LanceDB keeps the old row",
        "search/stores/lancedb.py",
        "merge = merge.when_matched_update_all() if replace else merge",
        "merge = merge",
        STORES,
    ),
    Mutant(
        "a usearch file mixes up its ids",
        "search/stores/usearch.py",
        "ids = as_objects(self._names.values())",
        "ids = as_objects(sorted(self._names.values()))",
        EVERYDAY,
    ),
    Mutant(
        "DuckDB breaks ties in any order",
        "search/stores/duckdb.py",
        '"ORDER BY 2, 1 LIMIT ?"',
        '"ORDER BY 2, hash(id) LIMIT ?"',
        EVERYDAY,
    ),
    Mutant(
        "a load into DuckDB that fails half-way is kept",
        "search/stores/duckdb.py",
        'self.connection.execute("ROLLBACK")',
        'self.connection.execute("COMMIT")',
        STORES,
    ),
    Mutant(
        "a table of the user's in a DuckDB file is taken over",
        "search/stores/duckdb.py",
        'if kinds.get("id") not in id_types or kinds.get("code") != "BIT":',
        "if False:",
        ("tests/search/test_duckdb.py",),
    ),
    Mutant(
        "a column is compared with a value of another type",
        "search/stores/conditions.py",
        "if type(value) not in allowed:",
        "if False:",
        EVERYDAY,
    ),
    Mutant(
        "rows of a load into PostgreSQL become visible batch by batch",
        "search/stores/postgres/loading.py",
        "                with self.session.transaction():\n                    self._copy(batch)\n",
        "                with self.session.transaction():\n                    self._copy(batch)\n"
        "                    self._merge(self._count(name), refuse_known, alone=True)\n",
        INTERRUPTED,
    ),
    Mutant(
        "an interrupted load into SQLite begins at row 0 again, and is then refused",
        "search/stores/sqlite_loading.py",
        "for batch in batches.after(resumed):",
        "for batch in batches:",
        INTERRUPTED,
    ),
    Mutant(
        "an id that is in two batches of a load is left to the engine",
        "search/stores/loading.py",
        "        require_distinct(rows.ids())\n",
        "",
        ("tests/search/test_loading.py::test_an_id_twice_in_the_source_is_refused_by_name",),
    ),
    Mutant(
        "a load with duplicates='refuse' replaces rows",
        "search/stores/loading.py",
        'store._load(batches, duplicates == "replace", digest)',
        "store._load(batches, True, digest)",
        ("tests/search/test_loading.py::test_a_file_and_a_table_become_a_store",),
    ),
]
