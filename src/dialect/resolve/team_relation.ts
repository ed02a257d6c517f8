import { type SourceRelation, typeOfColumn } from '../schema.ts';
import { commaList, identifier, joinSql, rawSql, renderSql, sql, type Sql } from '../sql.ts';
import type { Statement } from './statement.ts';

/** Types that are read unchanged, so that indexes are used. */
const plainTypes: ReadonlySet<string> = new Set([
  ...['text', 'character varying', 'smallint', 'integer', 'bigint', 'double precision', 'numeric', 'boolean'],
  ...['date', 'timestamp with time zone', 'uuid', 'interval', 'jsonb'],
]);

/** The SQL that converts a column to its dialect type; null if no conversion is needed. */
function readColumn(column: Sql, postgresType: string): Sql | null {
  if (plainTypes.has(postgresType)) return null;
  // Values that jsonb cannot represent are replaced, so that no row fails the statement.
  if (postgresType === 'json') return rawSql(readableJson(renderSql(column).text));
  if (postgresType === 'timestamp without time zone') return sql`(${column} at time zone 'UTC')`;
  // Through text, so that 0.1 stays 0.1.
  if (postgresType === 'real') return sql`${column}::text::float8`;
  if (typeOfColumn(postgresType, true).kind === 'array') return sql`to_jsonb(${column})`;
  return sql`${column}::text`;
}

/** Escapes that a `json` column may contain but PostgreSQL cannot decode: U+0000 and unpaired surrogates. */
const unreadable = String.raw`\\u(0000|[dD][89a-fA-F])`;
const highHalf = String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}`;
const lowHalf = String.raw`\\u[dD][c-fC-F][0-9a-fA-F]{2}`;
const unreadableEscape = String.raw`\\u0000|${highHalf}(?!${lowHalf})|(?<!${highHalf})${lowHalf}`;

/**
 * Replaces these escapes in a `json` value by U+FFFD. Escaped backslashes are rewritten first, so that every remaining
 * backslash starts an escape.
 */
export const readableJson = (document: string): string => `(case when ${document}::text ~ '${unreadable}'
  then regexp_replace(replace(${document}::text, '\\\\', '\\u005c'), '${unreadableEscape}', '\\\\ufffd', 'g')::json
  else ${document} end)`;

/** The conditions that restrict a relation to the rows of a project. */
interface RowFilter {
  /** The column with the team id; null if all rows belong to the project. */
  readonly teamColumn: string | null;
  /** More conditions on the relation's columns; null entries are skipped. */
  readonly conditions?: readonly (Sql | null)[];
  /** Set if the rows are versions with the columns `version` and `is_deleted`. */
  readonly versioned?: VersionedRows;
}

/** Only the newest version of each key is read, and only if it is not deleted. */
interface VersionedRows {
  readonly key: string;
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
  readonly #references = new Map<string, Sql>();
  readonly #restrictions: Sql[] = [];

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
    this.#columns.set(name, identifier(name));
    return this.reference(name);
  }

  /** The same fragment that `column` returns, without selecting the column. */
  reference(name: string): Sql {
    const reference = this.#references.get(name) ?? sql`${this.alias}.${identifier(name)}`;
    this.#references.set(name, reference);
    return reference;
  }

  /** Adds a condition on the relation's columns, whose names have no alias prefix. */
  restrict(condition: Sql): void {
    this.#restrictions.push(condition);
  }

  /** The item in FROM, with its alias. */
  from(): Sql {
    return sql`(${this.query([...this.#columns].map(([name, quoted]) => this.#read(name, quoted)))}) as ${this.alias}`;
  }

  /** A query over the project's rows. Column names have no alias prefix. */
  query(selected: readonly Sql[]): Sql {
    const { teamColumn, conditions = [], versioned } = this.#filter;
    const ofTeam = teamColumn === null ? [] : [sql`${identifier(teamColumn)} = ${this.#statement.team}`];
    const further = [
      ...(versioned === undefined ? [] : [sql`not is_deleted`]),
      ...conditions.filter((condition) => condition !== null),
      ...this.#restrictions,
    ];
    const relation = rawSql(this.#source.relation);
    if (versioned === undefined || this.#hasOneRowPer(versioned.key))
      return sql`select ${commaList(selected)} from ${relation}${whereOf([...ofTeam, ...further])}`;
    const key = identifier(versioned.key);
    const read = new Set([versioned.key, 'version', 'is_deleted', ...this.#columns.keys()]);
    const versions = sql`select distinct on (${key}) ${commaList([...read].map(identifier))} from ${relation}${whereOf(ofTeam)} order by ${key}, "version" desc`;
    return sql`select ${commaList(selected)} from (${versions}) as newest${whereOf(further)}`;
  }

  /** Whether a unique index guarantees that a project has one row per key. */
  #hasOneRowPer(key: string): boolean {
    const isInKey = (column: string): boolean => column === key || column === this.#filter.teamColumn;
    return this.#source.uniqueKeys?.some((columns) => columns.every(isInKey)) ?? true;
  }

  #read(name: string, quoted: Sql): Sql {
    const type = this.#source.columns.get(name);
    const read = type === undefined ? null : readColumn(quoted, type);
    return read === null ? quoted : sql`${read} as ${quoted}`;
  }
}

const whereOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
