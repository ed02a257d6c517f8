import type { PropertyReference } from './naming/mentions.ts';

export type Unit = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';

/** The time unit that rows are grouped by. */
export type Bucket = Unit | 'hour_of_day' | 'day_of_week';

/** The period of the rows. */
export type Period =
  | { readonly kind: 'last'; readonly count: number; readonly unit: Unit }
  /** The calendar unit `ago` units before the current one. */
  | { readonly kind: 'calendar'; readonly unit: Unit; readonly ago: number }
  /** Dates as `2026-11-21`: from the first (inclusive) to the second (exclusive); null if open. */
  | { readonly kind: 'days'; readonly from: string | null; readonly before: string | null }
  | { readonly kind: 'always' };

/** What is computed. */
export type Measure =
  | { readonly kind: 'count' | 'users' | 'sessions' | 'per_user' | 'per_session' | 'sessions_per_user' }
  | { readonly kind: SessionMeasure }
  | { readonly kind: PropertyMeasure; readonly property: PropertyReference };
export type SessionMeasure =
  | 'session_duration'
  | 'session_median'
  | 'session_longest'
  | 'session_shortest'
  | 'bounce_rate';
export type PropertyMeasure =
  | 'average'
  | 'sum'
  | 'minimum'
  | 'maximum'
  | 'median'
  | 'p90'
  | 'p95'
  | 'p99'
  | 'unique';

/** What rows are grouped by, besides time. */
export type Breakdown =
  | { readonly kind: 'event' | 'person' }
  | { readonly kind: 'property'; readonly property: PropertyReference };

export type Operator =
  | 'equals'
  | 'differs'
  | 'contains'
  | 'lacks'
  | 'starts'
  | 'ends'
  | 'greater'
  | 'at_least'
  | 'less'
  | 'at_most'
  | 'set'
  | 'unset';

/** A condition on rows. Several values are alternatives. */
export interface Filter {
  readonly property: PropertyReference;
  readonly operator: Operator;
  readonly values: readonly string[];
}

/** What a prompt requests, as far as it has been understood. */
export interface Draft {
  readonly events: readonly string[];
  readonly measures: readonly Measure[];
  readonly breakdowns: readonly Breakdown[];
  readonly filters: readonly Filter[];
  readonly bucket: Bucket | null;
  readonly period: Period | null;
  /** Two periods to compare. */
  readonly compared: readonly [Period, Period] | null;
  /** Events in sequence. */
  readonly steps: readonly string[];
  /** An event that the same people did not do. */
  readonly without: string | null;
  /** How many times people did the event. */
  readonly times: { readonly operator: 'more' | 'at_least' | 'less'; readonly count: number } | null;
  readonly limit: number | null;
  /** Only rows with a value, sorted by the number: largest or smallest first. */
  readonly ranked: 'most' | 'least' | null;
  /** Lists rows instead of numbers. */
  readonly rows: boolean;
  /** Counts or lists people instead of events. */
  readonly people: boolean;
  readonly table: 'events' | 'persons' | 'sessions' | null;
}

/** A draft before anything is understood. */
export const emptyDraft: Draft = {
  events: [],
  measures: [],
  breakdowns: [],
  filters: [],
  bucket: null,
  period: null,
  compared: null,
  steps: [],
  without: null,
  times: null,
  limit: null,
  ranked: null,
  rows: false,
  people: false,
  table: null,
};

/** Merges two drafts; null if they contradict each other. */
export function mergeDrafts(draft: Draft, more: Partial<Draft>): Draft | null {
  const merged: Record<string, unknown> = { ...draft };
  for (const [name, value] of Object.entries(more)) {
    const own = merged[name];
    if (name !== 'compared' && name !== 'steps' && Array.isArray(own) && Array.isArray(value))
      merged[name] = [...(own as readonly unknown[]), ...(value as readonly unknown[])];
    else if (own === null || own === false || (Array.isArray(own) && own.length === 0)) merged[name] = value;
    else if (own !== value) return null;
  }
  return merged as unknown as Draft;
}
