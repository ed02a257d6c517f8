import { identifier, sql, type Sql } from '../sql.ts';

/**
 * An inner query that computes window functions and everything that does not depend on them. PostgreSQL allows
 * window functions only at the top of a select list; the dialect allows them inside any function.
 */
export class WindowSubquery {
  readonly alias: Sql;
  readonly #columns = new Map<string, { readonly name: Sql; readonly sql: Sql }>();

  constructor(alias: Sql) {
    this.alias = alias;
  }

  /** The column of a value. Values with the same identity share one. */
  column(identity: string, fragment: Sql): Sql {
    let known = this.#columns.get(identity);
    if (known === undefined) {
      known = { name: identifier(`s${this.#columns.size + 1}`), sql: fragment };
      this.#columns.set(identity, known);
    }
    return sql`${this.alias}.${known.name}`;
  }

  /** The select list of the inner query. */
  get selected(): readonly Sql[] {
    return [...this.#columns.values()].map((column) => sql`${column.sql} as ${column.name}`);
  }
}
