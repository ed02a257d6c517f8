import type { SourceRelation } from '../schema.ts';
import { commaList, identifier, rawSql, sql, type Sql } from '../sql.ts';
import { readColumn } from './column_reading.ts';
import type { Statement } from './statement.ts';

/** How the rows of a relation are told to be the project's. */
export interface RowFilter {
  /** The column that holds the team; null where all rows are the project's. */
  readonly teamColumn: string | null;
  /** Further conditions on the relation's own columns; null for none. */
  readonly conditions?: readonly (Sql | null)[];
}

/**
 * The rows of one relation of the source that a project may see: the one place where the team filter is applied, and
 * the only one that writes the name of a relation into a statement. It reads the columns that were asked for, and
 * PostgreSQL flattens it, so that indexes beginning with the team are used.
 */
export class TeamRelation {
  readonly alias: Sql;
  readonly #statement: Statement;
  readonly #source: SourceRelation;
  readonly #filter: RowFilter;
  readonly #columns = new Map<string, Sql>();

  constructor(
    statement: Statement,
    source: SourceRelation,
    name: string,
    filter: RowFilter = { teamColumn: 'team_id' },
  ) {
    this.alias = statement.uniqueName(name);
    this.#statement = statement;
    this.#source = source;
    this.#filter = filter;
  }

  /** A column, which the relation reads from now on. */
  column(name: string): Sql {
    const quoted = identifier(name);
    this.#columns.set(name, quoted);
    return sql`${this.alias}.${quoted}`;
  }

  /** What stands in FROM, with its alias. */
  from(): Sql {
    return sql`(${this.query([...this.#columns].map(([name, quoted]) => this.#read(name, quoted)))}) as ${this.alias}`;
  }

  /** A query over the project's rows; columns are named without an alias. */
  query(selected: readonly Sql[]): Sql {
    const { teamColumn, conditions: further = [] } = this.#filter;
    const conditions = [
      ...(teamColumn === null ? [] : [sql`${identifier(teamColumn)} = ${this.#statement.team}`]),
      ...further.filter((condition) => condition !== null),
    ];
    const where = conditions.length === 0 ? sql`` : sql` where ${joinConditions(conditions)}`;
    return sql`select ${commaList(selected)} from ${rawSql(this.#source.relation)}${where}`;
  }

  #read(name: string, quoted: Sql): Sql {
    const type = this.#source.columns.get(name);
    const read = type === undefined ? null : readColumn(quoted, type);
    return read === null ? quoted : sql`${read} as ${quoted}`;
  }
}

const joinConditions = ([first, ...rest]: readonly Sql[]): Sql =>
  rest.reduce((joined, condition) => sql`${joined} and ${condition}`, first ?? sql`true`);
