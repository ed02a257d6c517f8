import type * as z from 'zod';
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import type { PropertyType } from '@exportd/dialect/schema';
import type { Property } from '@exportd/dialect/types';
import type { WeekStart } from '../filters/moments.ts';
import type { ProjectAction } from './actions.ts';
import type { Warehouse } from './warehouse.ts';

/** How often results change, which limits the age of a cached result. Null for kinds without an interval. */
export type QueryInterval = 'minute' | 'hour' | 'day' | 'week' | 'month' | null;

/** What limits the age of a query's cached result. */
export interface QueryFreshness {
  readonly interval: QueryInterval;
  /** The fixed end of the query's date range; null if the range is open or moves with the clock. */
  readonly date_to: Date | null;
  /** Milliseconds until clients should request a refresh; a minute by default. */
  readonly next_refresh_ms?: number;
}

/** A dashboard's dates, which replace those of a query, and its property filters, which narrow it. */
export interface FiltersOverride {
  readonly date_from?: string | null | undefined;
  readonly date_to?: string | null | undefined;
  /** Property filters as sent in the request. Each kind validates them like its own. */
  readonly properties?: readonly JsonValue[] | null | undefined;
}

/** A variable that a query reads. */
export interface UsedVariable {
  readonly code_name: string;
  /** Its key in the query's field `variables`; null if the query only names its code name. */
  readonly id: string | null;
  /** The value in the query itself, if any. */
  readonly value?: JsonValue;
}

/** The settings of a project that its queries depend on. */
export interface QueryProject {
  readonly team_id: number;
  readonly timezone: string;
  readonly week_start_day: WeekStart;
  /** Property filters that exclude test accounts, as the project stores them. */
  readonly test_account_filters: readonly JsonValue[];
  /** Additional tables that its queries may read. */
  readonly warehouse_tables: readonly {
    /** The name in queries; it may contain dots. */
    readonly name: string;
    readonly relation_schema: string;
    readonly relation_name: string;
    /** The column with the project id; null if every row belongs to the project. */
    readonly team_column: string | null;
  }[];
  readonly actions: readonly ProjectAction[];
  /** The declared types of its properties. */
  readonly property_definitions: readonly (Property & { readonly type: PropertyType })[];
}

/** The progress of a query. */
export interface QueryProgress {
  readonly rows_read?: number;
  readonly bytes_read?: number;
  readonly estimated_rows_total?: number;
}

/** What a query kind runs with. */
export interface QueryContext {
  /** In UTC, with a statement timeout. Its statements are cancelled with the query. */
  readonly warehouse: Warehouse;
  readonly project: QueryProject;
  /** The database's time, the same for all statements of the query. */
  readonly now: Date;
  /** Maximum rows of the output. A higher LIMIT is lowered to it, and `hasMore` reports further rows. */
  readonly row_limit: number;
  /** Maximum bytes of rows that `readRows` keeps. */
  readonly byte_limit: number;
  /** Values of the variables that the query reads, by code name. */
  readonly variables: Readonly<Record<string, JsonValue>>;
  /** Reports the query's progress. */
  readonly progress: (progress: QueryProgress) => void;
}

/** A list of rows or series, or one object. */
export type OutputResults = readonly unknown[] | Readonly<Record<string, unknown>>;

/** The output of a query kind. The endpoint adds the fields of the response around it. */
export interface QueryOutput {
  /** Rows, or one object for kinds without rows. */
  readonly results: OutputResults;
  readonly columns?: readonly string[];
  /** In the format of the kind: pairs of name and type, or types alone. */
  readonly types?: readonly unknown[];
  readonly hasMore?: boolean;
  /** What the reader of the result should know. */
  readonly notice?: string;
  readonly limit?: number;
  readonly offset?: number | null;
  /** The executed query in the dialect. */
  readonly dialect_query?: string;
  /** Additional response fields of the kind. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/**
 * One kind of query. Everything but the rows is known from the parsed form, so that results can be cached and returned
 * without running the query.
 */
export interface QueryKind<Query = never> {
  /** The value of the field `kind`. */
  readonly kind: string;
  /** Alternative values of `kind`. */
  readonly aliases?: readonly string[];
  /**
   * Strict: an unknown field is rejected by name with 400 in every refresh mode. Fills in defaults, so that equal
   * queries have one form. Its output must be JSON and parse to itself, because background queries are stored and
   * parsed again.
   */
  readonly schema: z.ZodType<Query>;
  /** What limits the age of a cached result. */
  freshness(query: Query, project: QueryProject, now: Date): QueryFreshness;
  /** The variables that the query reads; none for a text that cannot be parsed, which `run` then rejects. */
  variables(query: Query): readonly UsedVariable[];
  /** The query with a dashboard's filters. @throws QueryError with the path of the invalid filter */
  override(query: Query, filters: FiltersOverride): Query;
  /** The parts of the query that its output depends on, for the cache key; the whole query by default. */
  normalizeForCache?(query: Query): unknown;
  /** Runs it. @throws QueryError */
  run(query: Query, context: QueryContext): Promise<QueryOutput>;
}
