import type pg from 'pg';
import type { z } from 'zod';
import type { JsonValue } from '../domain/json_value.ts';
import type { PropertyDefinition } from './property_definitions.ts';
import type { WarehouseTable } from './warehouse_tables.ts';

/** How often results change, which decides how old an answer may be; null for kinds without an interval. */
export type QueryInterval = 'minute' | 'hour' | 'day' | 'week' | 'month' | null;

/** What is known of a query's age limits before it runs. */
export interface QueryFreshness {
  readonly interval: QueryInterval;
  /** The end of the range that the query reads, once and for all; null where it is open or moves with the clock. */
  readonly date_to: Date | null;
  /** Milliseconds until a client should ask for a refresh again; a minute when it is not given. */
  readonly next_refresh_ms?: number;
}

/** The dates and property filters of a dashboard, which stand in the place of a query's own or narrow it. */
export interface FiltersOverride {
  readonly date_from?: string | null | undefined;
  readonly date_to?: string | null | undefined;
  /** Property filters as the request has them; each kind checks them as it checks its own. */
  readonly properties?: readonly JsonValue[] | null | undefined;
}

/** A variable that a query reads. */
export interface UsedVariable {
  readonly code_name: string;
  /** The id under which the query's member `variables` names it; null when it is read by its code name alone. */
  readonly id: string | null;
  /** The value that the query itself brings; absent when it brings none. */
  readonly value?: JsonValue;
}

/** What a project's settings mean for its queries. */
export interface QueryProject {
  readonly team_id: number;
  readonly timezone: string;
  readonly week_start_day: 'sunday' | 'monday';
  /** Property filters that leave test accounts out, as the project stores them. */
  readonly test_account_filters: readonly JsonValue[];
  /** Further tables that its queries may read. */
  readonly warehouse_tables: readonly Pick<
    WarehouseTable,
    'name' | 'relation_schema' | 'relation_name' | 'team_column'
  >[];
  /** What its properties hold; one without a definition is text. */
  readonly property_definitions: readonly Pick<PropertyDefinition, 'scope' | 'name' | 'type'>[];
}

/** How far a query has come. */
export interface QueryProgress {
  readonly rows_read?: number;
  readonly bytes_read?: number;
  readonly estimated_rows_total?: number;
}

/** What a kind runs with. */
export interface QueryContext {
  /**
   * In a READ ONLY transaction with a statement timeout, in UTC. Statements on it are cancelled when the query is;
   * `readRows` reads through it within the bounds on rows and bytes.
   */
  readonly connection: Pick<pg.PoolClient, 'query'>;
  readonly project: QueryProject;
  /** The database's time, the same for all that this query asks. */
  readonly now: Date;
  /** The most rows that an answer may have; a LIMIT above it is cut, and `hasMore` says that there are more. */
  readonly row_limit: number;
  /** The most bytes of rows that `readRows` keeps. */
  readonly byte_limit: number;
  /** Values of the variables that the query reads, by code name. */
  readonly variables: Readonly<Record<string, JsonValue>>;
  /** Says how far the query has come. */
  readonly progress: (progress: QueryProgress) => void;
}

/** A list of rows or series, or one document. */
export type OutputResults = readonly unknown[] | Readonly<Record<string, unknown>>;

/** What a kind answers; the members around it are the endpoint's. */
export interface QueryOutput {
  /** Rows, or the one document that a kind answers with instead of rows. */
  readonly results: OutputResults;
  readonly columns?: readonly string[];
  /** As the kind shows them: pairs of name and type, or types alone. */
  readonly types?: readonly unknown[];
  readonly hasMore?: boolean;
  readonly limit?: number;
  readonly offset?: number | null;
  /** The query printed in the dialect. */
  readonly dialect_query?: string;
  /** Further members of the kind's answers. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/**
 * One kind of query. All that a query is, but for the rows, is known from its parsed form, so that answers can be
 * cached and given again without running anything.
 */
export interface QueryKind<Query = never> {
  /** The value of the member `kind`. */
  readonly kind: string;
  /** Other names that stand for it. */
  readonly aliases?: readonly string[];
  /**
   * Strict: a member that is unknown is refused by name, with 400 in every mode. Fills in defaults, so that equal
   * queries have one form. What it gives is JSON and parses to itself: queries in the background are stored and parsed again.
   */
  readonly schema: z.ZodType<Query>;
  /** How old an answer may be. */
  freshness(query: Query, project: QueryProject, now: Date): QueryFreshness;
  /** The variables that the query reads; none for a text that cannot be read, which `run` then refuses. */
  variables(query: Query): readonly UsedVariable[];
  /** The query with a dashboard's filters. @throws QueryError that names the member of the filters */
  override(query: Query, filters: FiltersOverride): Query;
  /** The query without what only changes how an answer looks, for the cache; the whole query when it is not given. */
  normalizeForCache?(query: Query): unknown;
  /** Runs it. @throws QueryError */
  run(query: Query, context: QueryContext): Promise<QueryOutput>;
}
