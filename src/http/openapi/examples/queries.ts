import type { z } from 'zod';
import type { draftedSqlSchema } from '../../schemas/draft_sql.ts';
import type { queryBody, queryResponseSchema, retrievedQuerySchema } from '../../schemas/query.ts';
import { ids, type ExampleTable } from './example.ts';

const text = 'select event, count() as events from events group by event order by events desc';
const dialect = { query: { kind: 'DialectQuery', query: text } } satisfies z.input<typeof queryBody>;
const inBackground = {
  ...dialect,
  refresh: 'force_async',
  client_query_id: ids.query,
} satisfies z.input<typeof queryBody>;
const trends = {
  query: {
    kind: 'TrendsQuery',
    series: [{ kind: 'EventsNode', event: 'purchase', math: 'total' }],
    interval: 'day',
    dateRange: { date_from: '-7d' },
  },
} satisfies z.input<typeof queryBody>;

const status = {
  id: ids.query,
  query_async: true,
  team_id: 1,
  insight_id: null,
  dashboard_id: null,
  labels: null,
  complete: false,
  error: false,
  error_message: null,
  results: null,
  start_time: '2026-11-01T11:30:00.000Z',
  pickup_time: '2026-11-01T11:30:00.040Z',
  end_time: null,
  expiration_time: null,
  task_id: `query-1-${ids.query}`,
  query_progress: {
    bytes_read: 0,
    rows_read: 0,
    estimated_rows_total: null,
    time_elapsed: 1.4,
    active_cpu_time: null,
  },
} satisfies z.output<typeof retrievedQuerySchema>['query_status'];

const result = {
  results: [
    ['pageview', 91_204],
    ['purchase', 1_877],
  ],
  columns: ['event', 'events'],
  types: [
    ['event', 'String'],
    ['events', 'UInt64'],
  ],
  hasMore: false,
  limit: 10_000,
  offset: 0,
  dialect_query: text,
  timezone: 'Europe/Berlin',
  is_cached: false,
  last_refresh: '2026-11-01T11:30:02.113Z',
  query_status: null,
} satisfies z.output<typeof queryResponseSchema>;

const complete = {
  ...status,
  complete: true,
  end_time: '2026-11-01T11:30:02.113Z',
  expiration_time: '2026-11-01T11:50:02.113Z',
  results: result,
  query_progress: null,
};

export const queryExamples: ExampleTable = {
  'POST /query': {
    body: { dialect, dialect_in_background: inBackground, trends },
    responses: {
      200: {
        result,
        started_in_background: { query_status: { ...status, pickup_time: null, query_progress: null } },
      },
    },
  },
  'GET /query/{id}': {
    responses: { 200: { running: { query_status: status }, complete: { query_status: complete } } },
  },
  'DELETE /query/{id}': {},
  'POST /query/check_auth_for_async': {},
  'GET /query/draft_sql': {
    responses: {
      200: {
        draft: {
          sql: "select count() from events where event = 'signup' and timestamp >= now() - interval 7 day",
        } satisfies z.output<typeof draftedSqlSchema>,
      },
    },
  },
};
