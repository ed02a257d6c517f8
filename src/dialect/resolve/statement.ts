import type { Query } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { DialectError } from '../dialect_error.ts';
import type { Schema } from '../schema.ts';
import type { QueryText } from '../query_text.ts';
import { bind, identifier, type Sql } from '../sql.ts';
import { type Type, zoneOf } from '../types.ts';
import { AliasCache } from './alias_cache.ts';

/** Whose query it is and what it may read. */
export interface Project {
  readonly teamId: number;
  /** IANA name; dates and times are those of this zone. */
  readonly timezone: string;
  readonly weekStartDay: 'sunday' | 'monday';
  /** ISO 8601: what `now()` says, the same all over a query. */
  readonly now: string;
  readonly schema: Schema;
}

/** The longest piece of SQL, in characters: names that stand for long expressions can multiply. */
const maxFragmentLength = 1_000_000;

interface NamedColumn {
  readonly name: string;
  readonly type: Type;
}

/** A query with a name, as it stands at the beginning of the statement. */
export interface CommonTable {
  readonly name: Sql;
  readonly columns: readonly NamedColumn[];
  /** How many tables it joins. */
  readonly tableCount: number;
}

interface CompiledSubquery {
  readonly sql: Sql;
  readonly columns: readonly NamedColumn[];
  readonly alias: Sql;
  readonly tableCount: number;
}

/** How often a name may be replaced by what it stands for. */
const maxAliasExpansions = 20_000;

/** What all parts of one statement share. */
export class Statement {
  readonly project: Project;
  readonly queryText: QueryText;
  /** Queries with a name, hoisted to the beginning; a later one may use an earlier. */
  readonly commonTables: { readonly name: Sql; readonly query: Sql }[] = [];
  /** Those that were compiled, by their trees. */
  readonly compiledCtes = new Map<Query, CommonTable>();
  /** Queries in expressions that were compiled, by the names that WITH gives them and by their texts. */
  readonly subqueries = new Map<object | null, Map<string, CompiledSubquery>>();
  readonly aliasCache = new AliasCache();
  #expansions = 0;
  readonly #names = new Map<string, number>();

  constructor(project: Project, queryText: QueryText) {
    this.project = project;
    this.queryText = queryText;
  }

  get team(): Sql {
    return bind(String(this.project.teamId), 'int4');
  }

  get timezone(): Sql {
    return bind(this.project.timezone, 'text');
  }

  /** The zone that a time is shown in. */
  zoneOf(type: Type): Sql {
    return bind(zoneOf(type) ?? this.project.timezone, 'text');
  }

  get now(): Sql {
    return bind(this.project.now, 'timestamptz');
  }

  /** A name for a relation that no other one of the statement has. */
  uniqueName(base: string): Sql {
    const plain = base
      .replaceAll(/[^a-z0-9_]/gi, '_')
      .toLowerCase()
      .slice(0, 40);
    const count = (this.#names.get(plain) ?? 0) + 1;
    this.#names.set(plain, count);
    return identifier(count === 1 ? plain : `${plain}__${count}`);
  }

  /** Puts a query at the beginning of the statement, where it is made once however often it is read. */
  commonTable(base: string, query: Sql): Sql {
    const name = this.uniqueName(base);
    this.commonTables.push({ name, query });
    return name;
  }

  error(summary: string, at: Node, suggestion: string | null = null): DialectError {
    const summaryWithPeriod = suggestion === null || /[.!?]$/.test(summary) ? summary : `${summary}.`;
    return new DialectError(this.queryText, summaryWithPeriod, { start: at.start, end: at.end, suggestion });
  }

  /** @throws DialectError where names stand for one another too often. */
  countExpansion(at: Node): void {
    this.#expansions += 1;
    if (this.#expansions > maxAliasExpansions)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }

  /** @throws DialectError where a piece has become too long. */
  checkSize(fragment: Sql, at: Node): void {
    if (fragment.size > maxFragmentLength)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }
}
