import { identifier, sql, type Sql } from '../sql.ts';

/**
 * What an inner query gives as columns: window functions and all that is made without them. PostgreSQL has window
 * functions in the list of a SELECT alone, while here they may stand inside of any function.
 */
export class WindowSubquery {
  readonly alias: Sql;
  readonly #columns = new Map<string, { readonly name: Sql; readonly sql: Sql }>();

  constructor(alias: Sql) {
    this.alias = alias;
  }

  /** The column of a piece; equal ones share one. */
  column(fragment: Sql): Sql {
    let known = this.#columns.get(fragment.key);
    if (known === undefined) {
      known = { name: identifier(`s${this.#columns.size + 1}`), sql: fragment };
      this.#columns.set(fragment.key, known);
    }
    return sql`${this.alias}.${known.name}`;
  }

  /** The select list of the inner query. */
  get selected(): readonly Sql[] {
    return [...this.#columns.values()].map((column) => sql`${column.sql} as ${column.name}`);
  }
}
