import { commaList, identifier, sql, type Sql } from '../sql.ts';
import type { Column } from './relation.ts';

interface ProjectedColumn {
  readonly name: Sql;
  readonly column: Column;
}

/** The columns of an inner query: what the rest of the statement reads of the rows that it makes. */
export class Projection {
  readonly alias: Sql;
  readonly #columns = new Map<string, ProjectedColumn>();

  constructor(alias: Sql) {
    this.alias = alias;
  }

  /** A column of the rows inside as one of the inner query; equal ones share one. */
  readonly column = (column: Column): Column => this.columnOf(this.alias, column);

  /** The same, where the inner query is read under another alias. */
  columnOf(alias: Sql, column: Column): Column {
    const { key } = column.sql;
    const known = this.#columns.get(key) ?? { name: identifier(`p${this.#columns.size + 1}`), column };
    this.#columns.set(key, known);
    return { ...column, sql: sql`${alias}.${known.name}` };
  }

  /** In the order in which they were asked for. */
  get columns(): readonly Column[] {
    return [...this.#columns.values()].map(({ column }) => column);
  }

  /** The select list of the inner query. */
  get selected(): Sql {
    return commaList([...this.#columns.values()].map(({ name, column }) => sql`${column.sql} as ${name}`));
  }
}
