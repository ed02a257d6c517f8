import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A query and its rows. */
interface QueryCase {
  readonly query: string;
  readonly rows: readonly (readonly unknown[])[];
}

interface Recorded {
  readonly query: string;
  readonly rows?: QueryCase['rows'];
  readonly error?: string;
}

/** A query with manually determined rows, with the reason why ClickHouse's are not used. */
interface ManualCase extends Recorded {
  /** Part of the error message. */
  readonly rejected?: string;
  readonly reason: string;
}

/** Rows of the tables that the queries read. */
interface QueryData {
  readonly persons: readonly Person[];
  readonly person_distinct_ids: readonly { readonly distinct_id: string; readonly person_id: string }[];
  readonly events: readonly Event[];
  readonly groups: readonly Group[];
  readonly orders: readonly object[];
  readonly plans: readonly object[];
}

interface Person {
  readonly id: string;
  readonly properties: object;
  readonly created_at: string;
}

interface Event {
  readonly event: string;
  readonly distinct_id: string;
  /** The number of a person, from 1. */
  readonly person: number | null;
  readonly timestamp: string;
  readonly properties: object;
  readonly person_properties?: object;
}

interface Group {
  readonly index: number;
  readonly key: string;
  readonly properties: object;
  readonly created_at: string;
  readonly updated_at: string;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));

export const queryData = read('queries_data.json') as QueryData;

const { cases: recorded } = read('queries.json') as { readonly cases: readonly Recorded[] };
const manualCases = read('queries_manual.json') as readonly ManualCase[];
const manualQueries = new Set(manualCases.map(({ query }) => query));

export const rejectedQueries = manualCases.flatMap(({ query, rejected }) =>
  rejected === undefined ? [] : [{ query, rejected }],
);

export const queryCases: readonly QueryCase[] = [
  ...recorded.filter(({ query }) => !manualQueries.has(query)),
  ...manualCases,
].flatMap(({ query, rows }) => (rows === undefined ? [] : [{ query, rows }]));

/** Queries that fail in ClickHouse and have no manual rows. */
export const unresolvedQueries = recorded.filter(
  ({ query, error }) => error !== undefined && !manualQueries.has(query),
);
