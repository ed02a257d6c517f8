import { type SourceRelation, typeOfColumn } from '../schema.ts';
import { bind, commaList, identifier, joinSql, rawSql, renderSql, type Sql, sql } from '../sql.ts';
import { type PropertyScope, type Type, whereUnmatched } from '../types.ts';
import type { Statement } from './statement.ts';

/** What a name in a relation refers to. */
export type RelationField = Column | NestedRow | UnsupportedField;

export interface Column {
  readonly kind: 'column';
  /** Equal for equal columns, whatever their SQL. A relation in FROM gives it; see `identifiedRelation`. */
  readonly identity?: string;
  readonly sql: Sql;
  readonly type: Type;
  /** Whose properties a JSON column has. */
  readonly propertiesOf?: PropertyScope;
  /**
   * Reads what is stored: null where the column has ''. Conditions that '' does not meet read it, so that indexes on it are
   * used.
   */
  readonly stored?: () => Sql;
}

/** A nested row of another relation, such as `person`. */
export interface NestedRow {
  readonly kind: 'nested';
  readonly fields: RelationFields;
}

/** A known field that is not supported. */
export interface UnsupportedField {
  readonly kind: 'unsupported';
  readonly summary: string;
  readonly suggestion: string | null;
}

/** The fields of a row. Reading a field makes the relation select its column. */
export interface RelationFields {
  readonly field: (name: string) => RelationField | undefined;
  /** All names, for suggestions. */
  readonly names: () => readonly string[];
  /** The fields of `*`. */
  readonly star: () => readonly string[];
}

/**
 * A target of predicate pushdown. Conditions on a relation's rows can restrict which rows are read for an
 * aggregation inside it, such as sessions, to those that can appear in the result.
 */
export interface PushdownTarget {
  /** Conditions are pushed down only if at least one of them reads this column. */
  readonly column: Sql;
  /** Columns that the conditions may read as well. */
  readonly otherColumns: readonly Sql[];
  /** Adds conditions on these columns that hold for all rows of the query. */
  readonly pushDown: (conditions: readonly Sql[]) => void;
}

/** A column that no index has, although the relation finds its rows by other indexes. */
export interface LookupTarget {
  readonly column: Sql;
  /** Restricts the rows to those that can have one of these values in the column. It may keep others. */
  readonly restrictTo: (values: readonly Sql[]) => void;
}

/** Joined rows that conditions on them alone find before the rows that they are joined to are read. */
export interface SearchTarget {
  /** What the conditions may read. */
  readonly columns: ReadonlySet<Sql>;
  /** The query of the ids of the joined rows for which the conditions hold; null is one of them if they hold without a row. */
  readonly search: (conditions: readonly Sql[]) => Sql;
  /** Restricts the rows to those that can be joined to one of these. It may keep others. */
  readonly restrictTo: (ids: readonly string[]) => void;
}

/** A relation that joins at most one row to each of its own, so that ORDER BY and LIMIT can choose these first. */
export interface PageTarget {
  /** Its own columns. */
  readonly columns: ReadonlySet<Sql>;
  /** Joins only to the rows that these clauses leave: WHERE, ORDER BY and LIMIT, with a leading space. */
  readonly limitTo: (clauses: Sql) => void;
}

/** A relation in FROM. */
export interface Relation extends RelationFields {
  /** Set if its rows are events with all of their columns. */
  readonly isEvents?: boolean;
  /** Its name in the query; null for an unnamed subquery. */
  readonly name: string | null;
  /** Its SQL. Call it after all fields are resolved: it reads only the columns used. */
  readonly from: () => Sql;
  /** The position of a row, if the rows have an order. Array aggregates preserve that order. */
  readonly ordinal?: () => Sql;
  /** Call it after all fields are resolved. */
  readonly pushdownTargets?: () => readonly PushdownTarget[];
  /** Call it after all fields are resolved. */
  readonly lookupTargets?: () => readonly LookupTarget[];
  /** Call it after all fields are resolved. */
  readonly searchTargets?: () => readonly SearchTarget[];
  /** Call it after all fields are resolved. Null if nothing is joined. */
  readonly pageTarget?: () => PageTarget | null;
}

/** @throws Error for a column that no relation in FROM has identified */
export function columnIdentity({ identity }: Column): string {
  if (identity === undefined) throw new Error('A column without an identity.');
  return identity;
}

export const column = (sql: Sql, type: Type, propertiesOf?: PropertyScope): Column => ({
  kind: 'column',
  sql,
  type,
  ...(propertiesOf === undefined ? {} : { propertiesOf }),
});

/** A column whose value other SQL has, where the rows that it is stored in cannot be read. */
export function replacedColumn(column: Column, replacement: Sql): Column {
  const { stored: _, ...replaced } = column;
  return { ...replaced, sql: replacement };
}

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
    return replacedColumn(column, sql`${alias}.${known.name}`);
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

/** A relation over a query, or anything with columns `c1`, `c2`, …, under an alias. */
export function queryRelation(
  name: string | null,
  from: Sql,
  alias: Sql,
  columns: readonly { readonly name: string; readonly type: Type }[],
): Relation {
  return {
    name,
    from: () => from,
    names: () => columns.map((one) => one.name),
    star: () => columns.map((one) => one.name),
    field: (requested) => {
      const at = columns.findIndex((one) => one.name === requested);
      const found = columns[at];
      return found === undefined ? undefined : column(sql`${alias}.${identifier(`c${at + 1}`)}`, found.type);
    },
  };
}

/**
 * A relation over a sorted query. Rows are numbered only if `ordinal` is used, because PostgreSQL does not keep the
 * order of a subquery.
 */
export function sortedRelation(
  name: string | null,
  rows: Sql,
  alias: Sql,
  columns: readonly { readonly name: string; readonly type: Type }[],
): Relation {
  const ordinal = identifier('ordinal');
  let isNumbered = false;
  return {
    ...queryRelation(name, rows, alias, columns),
    from: () =>
      isNumbered
        ? sql`(select *, row_number() over () as ${ordinal} from ${rows} as ${alias}) as ${alias}`
        : sql`${rows} as ${alias}`,
    ordinal: () => {
      isNumbered = true;
      return sql`${alias}.${ordinal}`;
    },
  };
}

/** A relation with all columns mapped, including those of nested rows. */
export function mappedRelation(relation: Relation, map: (column: Column) => Column): Relation {
  const mapped = (field: RelationField | undefined): RelationField | undefined => {
    if (field?.kind === 'column') return map(field);
    if (field?.kind !== 'nested') return field;
    const { fields } = field;
    return { kind: 'nested', fields: { ...fields, field: (name) => mapped(fields.field(name)) } };
  };
  return {
    name: relation.name,
    ...(relation.isEvents && { isEvents: true }),
    from: () => relation.from(),
    names: () => relation.names(),
    star: () => relation.star(),
    field: (name) => mapped(relation.field(name)),
  };
}

/**
 * A relation whose columns have an identity: the number of the relation and the path of the column. Each is resolved
 * once.
 */
export function identifiedRelation(relation: Relation, number: number): Relation {
  const { name, isEvents, from, ordinal } = relation;
  const { pushdownTargets, lookupTargets, searchTargets, pageTarget } = relation;
  return {
    name,
    from,
    ...(isEvents && { isEvents }),
    ...(ordinal && { ordinal }),
    ...(pushdownTargets && { pushdownTargets }),
    ...(lookupTargets && { lookupTargets }),
    ...(searchTargets && { searchTargets }),
    ...(pageTarget && { pageTarget }),
    ...identifiedFields(relation, `${number}.`),
  };
}

function identifiedFields(fields: RelationFields, prefix: string): RelationFields {
  const resolved = new Map<string, RelationField>();
  return {
    names: () => fields.names(),
    star: () => fields.star(),
    field: (name) => {
      const known = resolved.get(name);
      if (known !== undefined) return known;
      const field = fields.field(name);
      if (field === undefined) return undefined;
      const identified = identifiedField(field, `${prefix}${name}`);
      resolved.set(name, identified);
      return identified;
    },
  };
}

function identifiedField(field: RelationField, identity: string): RelationField {
  if (field.kind === 'column') return { ...field, identity };
  return field.kind === 'nested'
    ? { kind: 'nested', fields: identifiedFields(field.fields, `${identity}.`) }
    : field;
}

/** A column on the nullable side of an outer join. */
export const optionalColumn = (one: Column): Column => ({ ...one, type: whereUnmatched(one.type) });

/** A relation that calls `onRead` when one of its fields is used. */
export const observedRelation = (relation: Relation, onRead: () => void): Relation => ({
  ...mappedRelation(relation, (one) => one),
  field: (name) => {
    const field = relation.field(name);
    if (field !== undefined) onRead();
    return field;
  },
});

/** Types that are read unchanged, so that indexes are used. */
const plainTypes: ReadonlySet<string> = new Set([
  'text',
  'character varying',
  'smallint',
  'integer',
  'bigint',
  'double precision',
  'numeric',
  'boolean',
  'date',
  'timestamp with time zone',
  'uuid',
  'interval',
  'jsonb',
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
  readonly #properties = new Map<string, Sql>();
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

  /** Adds a property of the column `properties` to the selected columns; '' where a row has none. */
  property(name: string): Sql {
    const properties = this.#read('properties') ?? identifier('properties');
    this.#properties.set(name, sql`coalesce(${properties} ->> ${bind(name, 'text')}, '')`);
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
    const columns = [...this.#columns].map(([name, quoted]) => {
      const read = this.#read(name);
      return read === null ? quoted : sql`${read} as ${quoted}`;
    });
    const properties = [...this.#properties].map(([name, read]) => sql`${read} as ${identifier(name)}`);
    return sql`(${this.query([...columns, ...properties])}) as ${this.alias}`;
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

  /** The SQL that converts a column; null if no conversion is needed. */
  #read(name: string): Sql | null {
    const type = this.#source.columns.get(name);
    return type === undefined ? null : readColumn(identifier(name), type);
  }
}

const whereOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
