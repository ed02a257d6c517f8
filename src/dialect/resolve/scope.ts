import type { Expression, Query, Window } from '../ast.ts';
import { DistinctCount, identifier, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import type { Column, Relation } from './relation.ts';
import type { WindowSubquery } from './window_subquery.ts';
import type { Statement } from './statement.ts';
import type { Value } from './value.ts';

interface GroupColumn {
  readonly name: Sql;
  readonly sql: Sql;
}

interface GroupKey extends GroupColumn {
  readonly type: Type;
}

/** What a query groups by and which aggregates it needs: the columns of an inner query, which the rest refers to. */
export class Grouping {
  readonly alias: Sql;
  readonly #withTotals: boolean;
  readonly #keys = new Map<string, GroupKey>();
  readonly #aggregates = new Map<string, GroupColumn>();

  constructor(alias: Sql, withTotals = false) {
    this.alias = alias;
    this.#withTotals = withTotals;
  }

  addKey(value: Value, nullable: boolean): void {
    if (this.#keys.has(value.sql.key)) return;
    const name = identifier(`k${this.#keys.size + 1}`);
    const type = nullable || this.#withTotals ? { ...value.type, nullable: true } : value.type;
    this.#keys.set(value.sql.key, { name, sql: value.sql, type });
  }

  /** The key that an expression is equal to. */
  keyOf(value: Value): { readonly sql: Sql; readonly type: Type } | undefined {
    if (this.#keys.size === 0) return undefined;
    const key = this.#keys.get(value.sql.key);
    return key === undefined ? undefined : { sql: sql`${this.alias}.${key.name}`, type: key.type };
  }

  /** From one, in the order in which they were added. */
  positionOf(value: Value): number {
    return [...this.#keys.keys()].indexOf(value.sql.key) + 1;
  }

  /** The column of an aggregate; equal ones share one. */
  aggregate(call: Sql): Sql {
    let known = this.#aggregates.get(call.key);
    if (known === undefined) {
      known = { name: identifier(`a${this.#aggregates.size + 1}`), sql: call };
      this.#aggregates.set(call.key, known);
    }
    return sql`${this.alias}.${known.name}`;
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  get keys(): readonly GroupKey[] {
    return [...this.#keys.values()];
  }

  /** Whether an aggregate may be over no rows. */
  get mayBeEmpty(): boolean {
    return this.#keys.size === 0 || this.#withTotals;
  }

  /** The same aggregates without keys. */
  get withoutKeys(): Grouping {
    const whole = new Grouping(this.alias);
    for (const { sql: call } of this.#aggregates.values()) whole.aggregate(call);
    return whole;
  }

  get isUsed(): boolean {
    return this.#keys.size + this.#aggregates.size > 0;
  }

  /** What is counted, where nothing is asked of the groups but how many different values of one expression they have. */
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

/** Rows that are made of arrays and joined to those of FROM, in the order in which they were asked for. */
export class LateralJoins {
  readonly #joins = new Map<string, { readonly alias: Sql; readonly join: Sql }>();

  /** The alias of a join, whose SQL `make` writes; equal ones share one. */
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

/** Names that WITH gives to queries and expressions; those further inside hide those outside. */
export interface CteScope {
  readonly queries: ReadonlyMap<string, NamedQuery>;
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: CteScope | null;
}

export interface NamedQuery {
  readonly query: Query;
  /** Where its own names are looked up. */
  readonly scope: CteScope | null;
}

/** Where an expression stands. */
export type ExpressionContext =
  'select' | 'aggregate' | 'WHERE' | 'GROUP BY' | 'JOIN' | 'ARRAY JOIN' | 'LIMIT' | 'lambda';

/** What names mean at one place of a query. */
export interface Scope {
  readonly statement: Statement;
  readonly context: ExpressionContext;
  /** The aggregate whose argument this is. */
  readonly enclosingAggregate: string | null;
  readonly relations: readonly Relation[];
  /** Columns of USING, which are one column of both tables. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  readonly lateralJoins: LateralJoins;
  /** Those of the queries around, which cannot be used: only for a better error. */
  readonly outerRelations: readonly Relation[];
  readonly aliases: ReadonlyMap<string, Expression>;
  /** Columns that ARRAY JOIN made. */
  readonly arrayJoinColumns: ReadonlyMap<string, Value>;
  readonly ctes: CteScope | null;
  readonly lambdaParameters: ReadonlyMap<string, Value>;
  /** How many lambdas are around. */
  readonly lambdaDepth: number;
  /** Expressions with a name that are being expanded, in which that name means something else. */
  readonly expandingAliases: readonly Expression[];
  readonly grouping: Grouping | null;
  readonly windows: ReadonlyMap<string, Window>;
  /** Set where window functions are columns of an inner query. */
  readonly windowSubquery?: WindowSubquery | undefined;
}
