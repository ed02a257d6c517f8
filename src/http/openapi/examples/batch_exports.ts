import type { z } from 'zod';
import type {
  backfillBody,
  BatchExportResponse,
  createBody,
  pauseBody,
  unpauseBody,
  updateBody,
} from '../../schemas/batch_export.ts';
import type { destinationTestBody, newDestinationTestBody } from '../../schemas/destination_test.ts';
import type { retryFailedBody } from '../../schemas/retry_failed.ts';
import { acceptedDetail } from '../../route_context.ts';
import { dryRun } from './backfills.ts';
import { accepted, ids, pageWith, type ExampleTable } from './example.ts';
import { completedRun } from './runs.ts';

const credentials = { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', aws_secret_access_key: 'your secret key' };
const config = {
  bucket_name: 'my-bucket',
  region: 'eu-central-1',
  prefix: 'clicks/{year}/{month}',
  file_format: 'Parquet',
  compression: 'zstd',
};

const batchExport = {
  id: ids.batch_export,
  team_id: 1,
  name: 'Clicks',
  model: 'events',
  destination: { type: 'S3', config },
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: null,
  offset_day: null,
  paused: false,
  created_at: '2026-11-01T09:12:44.301Z',
  last_updated_at: '2026-11-01T09:12:44.301Z',
  last_paused_at: null,
  start_at: null,
  end_at: null,
  latest_runs: [completedRun],
  dialect_query: null,
  retention_days: null,
  schema: null,
  lag: {
    intervals: 0,
    seconds: 0,
    last_completed_interval_end: '2026-11-01T11:00:00.000Z',
    gaps: [],
  },
} satisfies BatchExportResponse;

const create = {
  name: 'Clicks',
  model: 'events',
  interval: 'hour',
  destination: { type: 'S3', config: { ...config, ...credentials } },
} satisfies z.input<typeof createBody>;

const createPersons = {
  name: 'Persons of the night',
  model: 'persons',
  interval: 'day',
  timezone: 'Europe/Berlin',
  offset_hour: 3,
  destination: { type: 'S3', config: { ...config, prefix: 'persons', ...credentials } },
} satisfies z.input<typeof createBody>;

const createWithQuery = {
  ...create,
  name: 'Purchases',
  dialect_query: "select uuid, timestamp, properties.price as price from events where event = 'purchase'",
} satisfies z.input<typeof createBody>;

const rename = { name: 'Clicks of the shop' } satisfies z.input<typeof updateBody>;
const move = {
  destination: { type: 'S3', config: { bucket_name: 'another-bucket' } },
} satisfies z.input<typeof updateBody>;

const testOfNew = {
  model: 'events',
  destination: create.destination,
} satisfies z.input<typeof newDestinationTestBody>;
const testOfStored = {} satisfies z.input<typeof destinationTestBody>;
const testOfChange = move satisfies z.input<typeof destinationTestBody>;

const range = { start_at: '2026-10-01T00:00:00Z', end_at: '2026-10-02T00:00:00Z' };
const backfill = range satisfies z.input<typeof backfillBody>;
const backfillPreview = { ...range, dry_run: true } satisfies z.input<typeof backfillBody>;
const pause = {} satisfies z.input<typeof pauseBody>;
const unpause = {} satisfies z.input<typeof unpauseBody>;
const unpauseAndBackfill = { backfill: true } satisfies z.input<typeof unpauseBody>;
const retryFailed = { since: '-2h' } satisfies z.input<typeof retryFailedBody>;

const noChanges = { changes: [], secrets: [] };
const checkOfNew = {
  changes: ['name', 'model', 'interval', 'destination__config__aws_secret_access_key'],
  secrets: ['destination__config__aws_secret_access_key'],
};

const testSteps = {
  failed: {
    steps: [
      {
        name: 'write',
        description: 'Write an object below the prefix.',
        result: {
          status: 'Failed',
          message:
            'AccessDenied: the credentials may not write below clicks/. Exports fail. Allow s3:PutObject.',
        },
      },
      {
        name: 'delete',
        description: 'Delete the object.',
        result: { status: 'Skipped', message: null },
      },
    ],
  },
};

const retried = {
  runs: 3,
  results: [{ batch_export: ids.batch_export, backfill_id: ids.backfill, runs: 3, detail: null }],
};

export const batchExportExamples: ExampleTable = {
  'GET /batch_exports': { responses: { 200: pageWith(batchExport) } },
  'POST /batch_exports': {
    body: {
      events_every_hour: create,
      persons_every_night: createPersons,
      columns_by_query: createWithQuery,
    },
    responses: {
      201: { created: batchExport },
      202: { still_pending: { id: ids.batch_export, ...acceptedDetail } },
    },
  },
  'GET /batch_exports/{id}': { responses: { 200: { batch_export: batchExport } } },
  'PATCH /batch_exports/{id}': {
    body: { rename, another_bucket: move },
    responses: { 200: { updated: { ...batchExport, ...rename } }, 202: accepted },
  },
  'POST /batch_exports/check': {
    body: { new_export: create },
    responses: { 200: { accepted: checkOfNew } },
  },
  'POST /batch_exports/{id}/check': {
    body: { another_bucket: move },
    responses: {
      200: { changed: { changes: ['destination__config__bucket_name'], secrets: [] }, unchanged: noChanges },
    },
  },
  'DELETE /batch_exports/{id}': { responses: { 202: accepted } },
  'POST /batch_exports/test': { body: { new_export: testOfNew }, responses: { 200: testSteps } },
  'POST /batch_exports/{id}/test': {
    body: { stored_config: testOfStored, another_bucket: testOfChange },
    responses: { 200: testSteps },
  },
  'POST /batch_exports/{id}/pause': { body: { pause }, responses: { 202: accepted } },
  'POST /batch_exports/{id}/unpause': {
    body: { unpause, fill_the_missed_intervals: unpauseAndBackfill },
    responses: { 202: accepted },
  },
  'POST /batch_exports/{id}/backfill': {
    body: { a_day: backfill, preview: backfillPreview },
    responses: { 200: { preview: dryRun }, 202: accepted },
  },
  'POST /batch_exports/retry_failed': {
    body: { of_the_last_two_hours: retryFailed, all: {} },
    responses: {
      200: { started: retried },
      202: {
        still_pending: { ...retried, results: [{ ...retried.results[0], backfill_id: null, runs: null }] },
      },
    },
  },
};
