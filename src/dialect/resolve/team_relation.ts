import type { SourceRelation } from '../schema.ts';
import { commaList, identifier, rawSql, sql, type Sql } from '../sql.ts';
import { readColumn } from './column_reading.ts';
import type { Statement } from './statement.ts';

/** The conditions that restrict a relation to the rows of a project. */
export interface RowFilter {
  /** The column with the team id; null if all rows belong to the project. */
  readonly teamColumn: string | null;
  /** More conditions on the relation's columns; null entries are skipped. */
  readonly conditions?: readonly (Sql | null)[];
}

/**
 * The rows of one source relation that a project may read. This is the only place that applies the team filter and
 * the only one that names a source relation in a statement. It selects only the columns used. PostgreSQL flattens
 * the subquery, so indexes that start with the team are used.
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

  /** Adds a column to the selected ones. */
  column(name: string): Sql {
    const quoted = identifier(name);
    this.#columns.set(name, quoted);
    return sql`${this.alias}.${quoted}`;
  }

  /** The item in FROM, with its alias. */
  from(): Sql {
    return sql`(${this.query([...this.#columns].map(([name, quoted]) => this.#read(name, quoted)))}) as ${this.alias}`;
  }

  /** A query over the project's rows. Column names have no alias prefix. */
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
