import type { Expression, Field, Name, Query, Window } from '../ast.ts';
import { nearestName, quoteString } from '../query_text.ts';
import { commaList, DistinctCount, generatedName, identifier, rowCount, type Sql, sql } from '../sql.ts';
import type { Type } from '../types.ts';
import type { Column, NestedRow, Relation, RelationField, UnsupportedField } from './relation.ts';
import type { Statement } from './statement.ts';
import { tableNames } from './tables/tables.ts';
import { identityOf, type Value } from './value.ts';

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

interface GroupColumn {
  readonly name: Sql;
  readonly sql: Sql;
}

/** What an aggregate keeps of each row in memory. */
interface Gathered {
  /** Bytes. */
  readonly size: Sql;
  /** If it keeps each value once: what makes rows equal, in types that PostgreSQL can compare. */
  readonly distinctBy: readonly Sql[] | null;
}

interface GroupKey extends GroupColumn {
  readonly value: Value;
  /** From 1. */
  readonly position: number;
  readonly type: Type;
}

/**
 * The keys and aggregates of a grouping query. They are columns of an inner query that the rest of the query reads.
 */
export class Grouping {
  readonly alias: Sql;
  readonly #withTotals: boolean;
  #hasEmptySet = false;
  readonly #keys = new Map<string, GroupKey>();
  readonly #aggregates = new Map<string, GroupColumn>();
  readonly #rowValues = new Set<Sql>();
  readonly #gathered = new Map<string, Gathered>();
  #rows = generatedName('rows');

  constructor(alias: Sql, withTotals = false) {
    this.alias = alias;
    this.#withTotals = withTotals;
  }

  addKey(value: Value, nullable: boolean): void {
    const identity = identityOf(value);
    if (this.#keys.has(identity)) return;
    const position = this.#keys.size + 1;
    const name = identifier(`k${position}`);
    const type = nullable || this.#withTotals ? { ...value.type, nullable: true } : value.type;
    this.#keys.set(identity, { value, position, name, sql: value.sql, type });
  }

  /** The key that is equal to an expression. */
  keyOf(value: Value): { readonly sql: Sql; readonly type: Type } | undefined {
    if (this.#keys.size === 0) return undefined;
    const key = this.#keys.get(identityOf(value));
    return key === undefined ? undefined : { sql: sql`${this.alias}.${key.name}`, type: key.type };
  }

  /** From 1, in the order of `addKey`. */
  positionOf(value: Value): number {
    return this.#keys.get(identityOf(value))?.position ?? 0;
  }

  /** The column of an aggregate. Calls with the same identity share one. */
  aggregate(identity: string, call: Sql): Sql {
    let known = this.#aggregates.get(identity);
    if (known === undefined) {
      known = { name: identifier(`a${this.#aggregates.size + 1}`), sql: call };
      this.#aggregates.set(identity, known);
    }
    return sql`${this.alias}.${known.name}`;
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  get keys(): readonly GroupKey[] {
    return [...this.#keys.values()];
  }

  /** Adds a set without keys, as of ROLLUP: its row exists even if there are no rows to group. */
  addEmptySet(): void {
    this.#hasEmptySet = true;
  }

  /** Whether an aggregate may run over no rows. */
  get mayBeEmpty(): boolean {
    return this.#keys.size === 0 || this.#withTotals || this.#hasEmptySet;
  }

  /** Notes the fragments of an aggregate that are computed from a row, which an inner query can compute. */
  addRowValues(fragments: readonly Sql[]): void {
    for (const fragment of fragments) this.#rowValues.add(fragment);
  }

  /** The alias of the rows that are grouped, if an inner query reads them. */
  get rows(): Sql {
    return this.#rows;
  }

  get rowValues(): readonly Sql[] {
    return [...this.#rowValues];
  }

  /**
   * Notes that an aggregate keeps values in memory.
   * @param identity of the call
   * @returns the bytes that all aggregates keep of the rows so far
   */
  gather(identity: string, gathered: Gathered): Sql {
    this.#gathered.set(identity, gathered);
    return sql`${this.rows}.gathered`;
  }

  /** What aggregates keep of a row; none if they keep no values. */
  get gathered(): readonly Gathered[] {
    return [...this.#gathered.values()];
  }

  get aggregates(): readonly GroupColumn[] {
    return [...this.#aggregates.values()];
  }

  /** The same aggregates without keys. */
  get withoutKeys(): Grouping {
    const whole = new Grouping(this.alias);
    whole.addRowValues(this.rowValues);
    for (const [identity, gathered] of this.#gathered) whole.gather(identity, gathered);
    whole.#rows = this.#rows;
    for (const [identity, { sql: call }] of this.#aggregates) whole.aggregate(identity, call);
    return whole;
  }

  get isUsed(): boolean {
    return this.#keys.size + this.#aggregates.size > 0;
  }

  /** The counted expression, if the groups have no other aggregates than one count of distinct values and one of rows. */
  get distinctCount(): {
    readonly keys: readonly GroupColumn[];
    readonly value: Sql;
    readonly name: Sql;
    /** The column with the number of rows, if there is one. */
    readonly rows: Sql | null;
  } | null {
    const all = this.aggregates;
    const counted = all.flatMap(({ name, sql: call }) =>
      call instanceof DistinctCount ? [{ name, value: call.counted }] : [],
    );
    const rows = all.find((one) => one.sql === rowCount)?.name ?? null;
    const [only, another] = counted;
    if (only === undefined || another !== undefined || all.length > (rows === null ? 1 : 2)) return null;
    return { keys: this.keys, value: only.value, name: only.name, rows };
  }

  /** The select list of the inner query, keys first. */
  get selected(): readonly Sql[] {
    return [...this.#keys.values(), ...this.#aggregates.values()].map(
      (column) => sql`${column.sql} as ${column.name}`,
    );
  }
}

/** Lateral joins that unnest arrays of the rows in FROM, in the order of first use. */
export class LateralJoins {
  readonly #joins = new Map<string, { readonly alias: Sql; readonly join: Sql }>();

  /** The alias of a join, whose SQL `make` creates. Equal joins share one. */
  add(key: string, alias: () => Sql, make: (alias: Sql) => Sql): Sql {
    const known = this.#joins.get(key);
    if (known !== undefined) return known.alias;
    const name = alias();
    this.#joins.set(key, { alias: name, join: make(name) });
    return name;
  }

  get joins(): readonly Sql[] {
    return [...this.#joins.values()].map(({ join }) => join);
  }
}

/** The names of a WITH clause. Inner names shadow outer ones. */
export interface CteScope {
  readonly queries: ReadonlyMap<string, NamedQuery>;
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: CteScope | null;
}

export interface NamedQuery {
  readonly query: Query;
  /** The scope in which its names are resolved. */
  readonly scope: CteScope | null;
}

/** The clause or call that contains an expression. */
type ExpressionContext =
  | 'select'
  | 'aggregate'
  | 'WHERE'
  | 'GROUP BY'
  | 'JOIN'
  | 'ARRAY JOIN'
  | 'LIMIT'
  | 'lambda';

/** What names mean at one point of a query. */
export interface Scope {
  readonly statement: Statement;
  readonly context: ExpressionContext;
  /** The aggregate whose argument is being compiled. */
  readonly enclosingAggregate: string | null;
  readonly relations: readonly Relation[];
  /** USING columns, which belong to both tables. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  readonly lateralJoins: LateralJoins;
  /** The same of the groups. Absent where a query has none, or a totals row. */
  readonly groupJoins?: LateralJoins;
  /** Relations of outer queries. They cannot be read; they only improve error messages. */
  readonly outerRelations: readonly Relation[];
  readonly aliases: ReadonlyMap<string, Expression>;
  /** Columns of ARRAY JOIN. */
  readonly arrayJoinColumns: ReadonlyMap<string, Value>;
  readonly ctes: CteScope | null;
  readonly lambdaParameters: ReadonlyMap<string, Value>;
  /** The number of enclosing lambdas. */
  readonly lambdaDepth: number;
  /** Aliases that are being expanded; inside them their names refer to columns. */
  readonly expandingAliases: readonly Expression[];
  readonly grouping: Grouping | null;
  /** Set if aggregates reduce the items of an array, of which there may be none. */
  readonly aggregatesItems?: boolean;
  readonly windows: ReadonlyMap<string, Window>;
  /** Set if window functions are columns of an inner query. */
  readonly windowSubquery?: WindowSubquery | undefined;
  /** Set inside a SELECT. */
  readonly windowSizes?: WindowSizes;
}

/** What the first names of a path refer to. `rest` holds the remaining names. */
type ResolvedName =
  | ResolvedField
  | ({ readonly rest: readonly Name[] } & (
      | { readonly kind: 'value'; readonly value: Value }
      | { readonly kind: 'expression'; readonly expression: Expression }
    ));

interface ResolvedField {
  readonly kind: 'relation_field';
  readonly relationField: RelationField;
  readonly name: Name;
  readonly rest: readonly Name[];
}

/**
 * Resolves the start of a path such as `e.person.properties.email`. An alias of SELECT takes precedence over a
 * column, except inside its own expression.
 * @throws DialectError
 */
export function resolveField(field: Field, scope: Scope): ResolvedName {
  const [first, ...rest] = field.path;
  if (first === undefined) throw new Error('A field without a name.');
  const name = first.text;
  const parameter = scope.lambdaParameters.get(name);
  if (parameter !== undefined) return { kind: 'value', value: parameter, rest };
  const alias = scope.aliases.get(name);
  const qualifiedByTable = alias === undefined ? undefined : qualifiedField(field.path, scope, false);
  if (qualifiedByTable !== undefined) return qualifiedByTable;
  if (alias !== undefined && !scope.expandingAliases.includes(alias))
    return { kind: 'expression', expression: alias, rest };
  const arrayJoinColumn = scope.arrayJoinColumns.get(name);
  if (arrayJoinColumn !== undefined) return { kind: 'value', value: arrayJoinColumn, rest };
  const qualified = qualifiedField(field.path, scope, true);
  if (qualified !== undefined) return qualified;
  const usingColumn = scope.usingColumns.get(name);
  if (usingColumn !== undefined)
    return { kind: 'relation_field', relationField: usingColumn, name: first, rest };
  const relationField = unqualifiedField(first, scope);
  if (relationField !== undefined) return { kind: 'relation_field', relationField, name: first, rest };
  const expression = cteExpression(name, scope);
  if (expression !== undefined && !scope.expandingAliases.includes(expression))
    return { kind: 'expression', expression, rest };
  throw unknownFieldError(field, first, scope);
}

/** Resolves an unqualified name. @throws DialectError if several relations have it */
function unqualifiedField(name: Name, scope: Scope): RelationField | undefined {
  const found = scope.relations.flatMap((relation) => {
    const relationField = relation.field(name.text);
    return relationField === undefined ? [] : [{ relation, relationField }];
  });
  const [only, another] = found;
  if (another !== undefined)
    throw ambiguousFieldError(
      name,
      found.map(({ relation }) => relation),
      scope,
    );
  return only?.relationField;
}

/** Resolves the nested row before a star, such as `person` or `e.person`. @throws DialectError */
export function resolveRow(path: readonly Name[], scope: Scope): NestedRow | UnsupportedField | undefined {
  const [first, ...rest] = path;
  const qualified = qualifiedField(path, scope, false);
  const alone = first === undefined || rest.length > 0 ? undefined : unqualifiedField(first, scope);
  const relationField = qualified?.rest.length === 0 ? qualified.relationField : alone;
  return relationField?.kind === 'column' ? undefined : relationField;
}

/** Resolves `e.event`, also by table name. A table name with dots takes as many parts of the path. */
function qualifiedField(path: readonly Name[], scope: Scope, isRequired: boolean): ResolvedField | undefined {
  for (const relation of scope.relations) {
    const parts = relation.name?.split('.').length ?? 0;
    const named = path.slice(0, parts).map(({ text }) => text);
    const [next, ...rest] = path.slice(parts);
    if (parts === 0 || next === undefined || named.join('.') !== relation.name) continue;
    const relationField = relation.field(next.text);
    if (relationField !== undefined) return { kind: 'relation_field', relationField, name: next, rest };
    if (!isRequired || scope.relations.some((other) => other.field(path[0]?.text ?? '') !== undefined))
      continue;
    const near = nearestName(next.text, relation.names());
    throw scope.statement.error(`Unable to resolve field: ${next.text}`, next, didYouMean(near));
  }
  return undefined;
}

function cteExpression(name: string, scope: Scope): Expression | undefined {
  for (let { ctes } = scope; ctes !== null; ctes = ctes.outer) {
    const expression = ctes.expressions.get(name);
    if (expression !== undefined) return expression;
  }
  return undefined;
}

function ambiguousFieldError(name: Name, relations: readonly Relation[], scope: Scope): Error {
  const tables = relations.map((relation) => relation.name ?? 'an unnamed subquery');
  const qualifier = relations[0]?.name ?? 'table';
  return scope.statement.error(
    `Ambiguous field: ${name.text} is in ${tables.join(' and ')}.`,
    name,
    `Qualify it, for example ${qualifier}.${name.text}.`,
  );
}

function unknownFieldError(field: Field, first: Name, scope: Scope): Error {
  const { statement, relations, outerRelations } = scope;
  const name = first.text;
  if (relations.some((relation) => relation.name === name)) {
    const suggestion = field.path.length === 1 ? `Select one of its columns, such as ${name}.id.` : null;
    return statement.error(`Can't select a table when a column is expected: ${name}`, first, suggestion);
  }
  if (tableNames(statement).includes(name) && !outerRelations.some((relation) => relation.name === name))
    return statement.error(`Unable to resolve field: ${name}`, first, `The table ${name} is not in FROM.`);
  const alias = scope.aliases.get(name);
  const isColumnOfItsName = alias !== undefined && alias === scope.expandingAliases.at(-1);
  if (alias !== undefined && !isColumnOfItsName)
    return statement.error(`The alias ${name} refers to itself.`, first);
  const isOutside = outerRelations.some(
    (relation) => relation.name === name || relation.field(name) !== undefined,
  );
  if (isOutside && !relations.some((relation) => relation.names().includes(name)))
    return statement.error(
      `Unable to resolve field: ${name}`,
      first,
      'A subquery cannot use columns of the outer query; use a JOIN.',
    );
  const names = [
    ...scope.lambdaParameters.keys(),
    ...[...scope.aliases.keys()].filter((known) => known !== name),
    ...scope.arrayJoinColumns.keys(),
    ...relations.flatMap((relation) => [...relation.names()]),
    ...relations.flatMap((relation) => (relation.name === null ? [] : [relation.name])),
  ];
  const near = nearestName(name, names);
  const hint =
    near === null
      ? (groupHint(field, relations) ?? quoteHint(field, first, statement.queryText.text))
      : didYouMean(near);
  return statement.error(`Unable to resolve field: ${name}`, first, hint);
}

/** A hint for `organization.properties.name`, which other products name after the type of a group. */
const groupHint = ({ path }: Field, relations: readonly Relation[]): string | null =>
  path[1]?.text === 'properties' && relations.some((relation) => relation.names().includes('group_0'))
    ? 'Groups are called group_0 to group_4: group_0.properties.name.'
    : null;

/** A hint for `event = "purchase"`, as other SQL dialects write strings. */
const quoteHint = ({ path }: Field, { start, text }: Name, query: string): string | null =>
  path.length === 1 && query[start] === '"'
    ? `Write strings in single quotes: ${quoteString(text, "'")}.`
    : null;

export const didYouMean = (near: string | null): string | null =>
  near === null ? null : `Perhaps you meant \`${near}\`?`;
