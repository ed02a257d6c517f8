import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A query and its rows. */
export interface QueryCase {
  readonly query: string;
  readonly rows: readonly (readonly unknown[])[];
}

interface Recorded {
  readonly query: string;
  readonly rows?: QueryCase['rows'];
  readonly error?: string;
}

/** A query whose rows were worked out by hand, with the reason why ClickHouse does not say them. */
interface ByHand extends Recorded {
  /** Part of the sentence with which the dialect refuses it. */
  readonly refused?: string;
  readonly why: string;
}

/** Rows of the tables that the queries read. */
export interface QueryData {
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
  /** The number of a person, from one. */
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
const byHand = read('queries_by_hand.json') as readonly ByHand[];
const handMade = new Set(byHand.map(({ query }) => query));

export const refusedQueries = byHand.flatMap(({ query, refused }) =>
  refused === undefined ? [] : [{ query, refused }],
);

export const queryCases: readonly QueryCase[] = [
  ...recorded.filter(({ query }) => !handMade.has(query)),
  ...byHand,
].flatMap(({ query, rows }) => (rows === undefined ? [] : [{ query, rows }]));

/** Queries that ClickHouse refuses need an answer by hand. */
export const unansweredQueries = recorded.filter(
  ({ query, error }) => error !== undefined && !handMade.has(query),
);
