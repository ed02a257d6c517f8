import type { z } from 'zod';
import type { retryBody, RunResponse } from '../../schemas/run.ts';
import { accepted, ids, pageWith, type ExampleTable } from './example.ts';

/** A completed run of an hour. */
export const completedRun = {
  id: ids.run,
  status: 'Completed',
  status_detail: null,
  records_completed: 4_933,
  latest_error: null,
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
  cursor: null,
  created_at: '2026-11-01T11:00:01.118Z',
  finished_at: '2026-11-01T11:00:04.502Z',
  last_updated_at: '2026-11-01T11:00:04.502Z',
  records_total_count: 4_933,
  batch_export: ids.batch_export,
  bytes: 418_204,
  files: 1,
  generation: 1,
  manifest_key: `clicks/2026/11/_manifests/${ids.batch_export}/20261101T100000Z-20261101T110000Z.json`,
  backfill_id: null,
  allow_shrink: false,
  temporal_ui: null,
} satisfies RunResponse;

const failedRun = {
  ...completedRun,
  status: 'Failed',
  records_completed: 0,
  latest_error: 'NoSuchBucket: The bucket my-bucket does not exist.',
  bytes: 0,
  files: 0,
  manifest_key: null,
} satisfies RunResponse;

const retry: z.input<typeof retryBody> = {};
const retryWithFewerRows: z.input<typeof retryBody> = { allow_shrink: true };

export const runExamples: ExampleTable = {
  'GET /batch_exports/{batch_export_id}/runs': { responses: { 200: pageWith(completedRun) } },
  'GET /batch_exports/{batch_export_id}/runs/{id}': {
    responses: { 200: { completed: completedRun, failed: failedRun } },
  },
  'POST /batch_exports/{batch_export_id}/runs/{id}/retry': {
    body: { retry, allow_fewer_rows: retryWithFewerRows },
    responses: { 202: accepted },
  },
  'POST /batch_exports/{batch_export_id}/runs/{id}/cancel': {
    body: { cancel: {} },
    responses: {
      200: { cancelled: { ...completedRun, status: 'Cancelled', manifest_key: null } satisfies RunResponse },
      202: accepted,
    },
  },
};
