import { commaList, sql, type Sql } from '../sql.ts';
import type { Statement } from './statement.ts';

interface WindowSize {
  readonly name: Sql;
  readonly size: Sql;
  readonly partitionBy: readonly Sql[];
}

/**
 * What window functions of a SELECT keep in memory: all values of a partition. Their sizes are tables of the statement,
 * computed once and before the functions run, because a window function cannot read another.
 */
export class WindowSizes {
  readonly #statement: Statement;
  readonly #sizes = new Map<string, WindowSize>();

  constructor(statement: Statement) {
    this.#statement = statement;
  }

  /**
   * Notes that a function keeps values of its partition.
   * @param identity of the call
   * @param size the bytes that it keeps of a row
   * @returns the bytes that it keeps of its largest partition
   */
  add(identity: string, size: Sql, partitionBy: readonly Sql[]): Sql {
    let known = this.#sizes.get(identity);
    if (known === undefined) {
      known = { name: this.#statement.uniqueName('kept'), size, partitionBy };
      this.#sizes.set(identity, known);
    }
    return sql`(select size from ${known.name})`;
  }

  /** @param rows FROM and WHERE of the rows that the functions read */
  addTables(rows: Sql): void {
    for (const { name, size, partitionBy } of this.#sizes.values()) {
      const groups = partitionBy.length === 0 ? sql`` : sql` group by ${commaList(partitionBy)}`;
      const sizes = sql`select sum(${size}) as size${rows}${groups}`;
      this.#statement.commonTables.push({
        name,
        query: sql`select coalesce(max(sizes.size), 0) as size from (${sizes}) as sizes`,
      });
    }
  }
}
