import { DatabaseSync } from 'node:sqlite';

/** Those of the UI's first page and its filters, and of the attributes by which exportd's workflows are found. */
const usedIndex = /^(default_idx|by_workflow_id|by_workflow_type|by_status|by_keyword_0\d)$/;

/** How long Temporal may hold the file, in milliseconds. */
const busyTimeoutMs = 10_000;

/**
 * Drops the indexes of Temporal's list of executions that a local stack does not use. Its development server has 58, and each
 * start and end of a workflow writes all of them: a quarter of its CPU time. A filter by another attribute reads the whole list.
 * @param file its SQLite database, in WAL mode. It may be running.
 */
export function dropUnusedIndexes(file: string): void {
  const database = new DatabaseSync(file);
  try {
    database.exec(`pragma busy_timeout = ${String(busyTimeoutMs)}`);
    const indexes = database
      .prepare(
        `select name from sqlite_schema
         where type = 'index' and tbl_name = 'executions_visibility' and sql is not null`,
      )
      .all();
    const unused = indexes.map(({ name }) => String(name)).filter((name) => !usedIndex.test(name));
    database.exec(['begin immediate', ...unused.map((name) => `drop index "${name}"`), 'commit'].join(';\n'));
  } finally {
    database.close();
  }
}
