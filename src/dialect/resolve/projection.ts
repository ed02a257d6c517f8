import { commaList, identifier, sql, type Sql } from '../sql.ts';
import { type Column, columnIdentity } from './relation.ts';

interface ProjectedColumn {
  readonly name: Sql;
  readonly column: Column;
}

/** The columns of an inner query that the rest of the statement reads. */
export class Projection {
  readonly alias: Sql;
  readonly #columns = new Map<string, ProjectedColumn>();

  constructor(alias: Sql) {
    this.alias = alias;
  }

  /** Exposes a column of the inner rows. Equal columns share one. */
  readonly column = (column: Column): Column => this.columnOf(this.alias, column);

  /** The same for an inner query read under another alias. */
  columnOf(alias: Sql, column: Column): Column {
    const identity = columnIdentity(column);
    const known = this.#columns.get(identity) ?? { name: identifier(`p${this.#columns.size + 1}`), column };
    this.#columns.set(identity, known);
    return { ...column, sql: sql`${alias}.${known.name}` };
  }

  /** In the order of first use. */
  get columns(): readonly Column[] {
    return [...this.#columns.values()].map(({ column }) => column);
  }

  /** The select list of the inner query. */
  get selected(): Sql {
    return commaList([...this.#columns.values()].map(({ name, column }) => sql`${column.sql} as ${name}`));
  }
}
