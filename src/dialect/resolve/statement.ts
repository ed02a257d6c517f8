import type { Query } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { DialectError } from '../dialect_error.ts';
import type { Schema } from '../schema.ts';
import type { QueryText } from '../query_text.ts';
import { bind, identifier, type Sql } from '../sql.ts';
import { TimeZone } from '../time_zone.ts';
import { type Type, zoneOf } from '../types.ts';
import { AliasCache } from './alias_cache.ts';
import type { TypedQuery } from './value.ts';

/** The project of a query and what the query may read. */
export interface Project {
  readonly teamId: number;
  /** IANA name. Dates and times are in this zone. */
  readonly timezone: string;
  readonly weekStartDay: 'sunday' | 'monday';
  /** ISO 8601. The value of `now()` throughout the query. */
  readonly now: string;
  readonly schema: Schema;
}

/** Maximum length of an SQL fragment in characters. Nested aliases can multiply. */
const maxFragmentLength = 1_000_000;

interface NamedColumn {
  readonly name: string;
  readonly type: Type;
}

/** A CTE at the start of the statement. */
export interface CommonTable {
  readonly typed: TypedQuery;
  readonly name: Sql;
  readonly columns: readonly NamedColumn[];
  /** The number of tables that it joins. */
  readonly tableCount: number;
}

interface CompiledSubquery {
  readonly typed: TypedQuery;
  readonly number: number;
  readonly sql: Sql;
  readonly columns: readonly NamedColumn[];
  readonly alias: Sql;
  readonly tableCount: number;
}

/** Maximum levels of expressions through their aliases. The parser limits those of the text; more would exhaust the stack. */
const maxNestedExpressions = 500;

/** Maximum number of alias expansions in a statement. */
const maxAliasExpansions = 20_000;

/** State shared by all parts of one statement. */
export class Statement {
  readonly project: Project;
  readonly queryText: QueryText;
  /** CTEs, hoisted to the start of the statement; each may use earlier ones. */
  readonly commonTables: { readonly name: Sql; readonly query: Sql }[] = [];
  /** Compiled CTEs by their trees. */
  readonly compiledCtes = new Map<Query, CommonTable>();
  /** Compiled subqueries of expressions, by CTE scope and canonical text. */
  readonly subqueries = new Map<object | null, Map<string, CompiledSubquery>>();
  readonly aliasCache = new AliasCache();
  #expansions = 0;
  #numbers = 0;
  #depth = 0;
  readonly #names = new Map<string, number>();

  constructor(project: Project, queryText: QueryText) {
    this.project = project;
    this.queryText = queryText;
  }

  get team(): Sql {
    return bind(String(this.project.teamId), 'int4');
  }

  get timezone(): TimeZone {
    return new TimeZone(this.project.timezone);
  }

  /** The time zone of a type, or the project's. */
  zoneOf(type: Type): TimeZone {
    return new TimeZone(zoneOf(type) ?? this.project.timezone);
  }

  get now(): Sql {
    return bind(this.project.now, 'timestamptz');
  }

  /**
   * A relation alias that is unique in the statement. A user's name never contains the `$`, and neither does a name that
   * the compiler writes itself, so none can capture another.
   */
  uniqueName(base: string): Sql {
    const plain = base
      .replaceAll(/[^a-z0-9_]/gi, '_')
      .toLowerCase()
      .slice(0, 40);
    const count = (this.#names.get(plain) ?? 0) + 1;
    this.#names.set(plain, count);
    return identifier(`${plain}$${count}`);
  }

  /** A number that nothing else in the statement has. */
  nextNumber(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Adds a CTE to the statement, which is computed once however often it is read. */
  commonTable(base: string, query: Sql): Sql {
    const name = this.uniqueName(base);
    this.commonTables.push({ name, query });
    return name;
  }

  error(summary: string, at: Node, suggestion: string | null = null): DialectError {
    const summaryWithPeriod = suggestion === null || /[.!?]$/.test(summary) ? summary : `${summary}.`;
    return new DialectError(this.queryText, summaryWithPeriod, { start: at.start, end: at.end, suggestion });
  }

  /** Counts a level of expressions, until `leaveExpression`. @throws DialectError if there are too many */
  enterExpression(at: Node): void {
    this.#depth += 1;
    if (this.#depth > maxNestedExpressions)
      throw this.error(
        'The aliases of this query nest too deeply.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }

  leaveExpression(): void {
    this.#depth -= 1;
  }

  /** @throws DialectError if aliases are expanded too often */
  countAliasExpansion(at: Node): void {
    this.#expansions += 1;
    if (this.#expansions > maxAliasExpansions)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }

  /** @throws DialectError if a fragment is too long */
  checkLength(fragment: Sql, at: Node): void {
    if (fragment.length > maxFragmentLength)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }
}
