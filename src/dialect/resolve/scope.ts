import type { Expression, Query, Window } from '../ast.ts';
import { commaList, DistinctCount, generatedName, identifier, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import type { Column, Relation } from './relation.ts';
import type { Statement } from './statement.ts';
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

  /** The counted expression, if the only aggregate of the groups is a count of distinct values. */
  get distinctCount(): {
    readonly keys: readonly GroupColumn[];
    readonly value: Sql;
    readonly name: Sql;
  } | null {
    const [only, another] = [...this.#aggregates.values()];
    if (only === undefined || another !== undefined || !(only.sql instanceof DistinctCount)) return null;
    return { keys: this.keys, value: only.sql.counted, name: only.name };
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
  readonly windows: ReadonlyMap<string, Window>;
  /** Set if window functions are columns of an inner query. */
  readonly windowSubquery?: WindowSubquery | undefined;
  /** Set inside a SELECT. */
  readonly windowSizes?: WindowSizes;
}
