import type { z } from 'zod';
import type { BackfillResponse, createBackfillBody, DryRunResponse } from '../../schemas/backfill.ts';
import { accepted, ids, pageWith, type ExampleTable } from './example.ts';

/** The preview of a backfill. */
export const dryRun = {
  dry_run: true,
  start_at: '2026-10-01T00:00:00.000Z',
  end_at: '2026-10-02T00:00:00.000Z',
  intervals: 24,
  rows: 118_422,
  detail: null,
} satisfies DryRunResponse;

const backfill = {
  id: ids.backfill,
  batch_export: ids.batch_export,
  team_id: 1,
  start_at: '2026-10-01T00:00:00.000Z',
  end_at: '2026-10-02T00:00:00.000Z',
  status: 'Running',
  retry_of_run_id: null,
  retries_failed: false,
  allow_shrink: false,
  created_at: '2026-11-01T09:20:00.000Z',
  finished_at: null,
  last_updated_at: '2026-11-01T09:20:31.250Z',
  progress: {
    total_runs: 24,
    finished_runs: 6,
    completed_runs: 6,
    failed_runs: 0,
    cancelled_runs: 0,
    retrying_runs: 0,
    progress: 0.25,
    records_completed: 29_605,
    records_total_count: 49_342,
  },
} satisfies BackfillResponse;

const range = { start_at: '2026-10-01T00:00:00Z', end_at: '2026-10-02T00:00:00Z' };
const bodies = {
  a_day: range,
  preview: { ...range, dry_run: true },
  allow_fewer_rows: { ...range, allow_shrink: true },
} satisfies Record<string, z.input<typeof createBackfillBody>>;

const oneBackfill = '/batch_exports/{batch_export_id}/backfills/{id}';
const ended = { finished_at: '2026-11-01T09:21:00.000Z', last_updated_at: '2026-11-01T09:21:00.000Z' };
const cancelled = { ...backfill, ...ended, status: 'Cancelled', progress: null } satisfies BackfillResponse;
const paused = { ...backfill, status: 'Paused' } satisfies BackfillResponse;

export const backfillExamples: ExampleTable = {
  'GET /batch_exports/{batch_export_id}/backfills': { responses: { 200: pageWith(backfill) } },
  'POST /batch_exports/{batch_export_id}/backfills': {
    body: bodies,
    responses: {
      200: { preview: dryRun },
      201: { created: { backfill_id: backfill.id, ...backfill } },
      202: accepted,
    },
  },
  [`GET ${oneBackfill}`]: { responses: { 200: { running: backfill } } },
  [`POST ${oneBackfill}/cancel`]: {
    body: { cancel: {} },
    responses: { 200: { cancelled }, 202: accepted },
  },
  [`POST ${oneBackfill}/pause`]: { body: { pause: {} }, responses: { 200: { paused }, 202: accepted } },
  [`POST ${oneBackfill}/unpause`]: {
    body: { unpause: {} },
    responses: { 200: { running: backfill }, 202: accepted },
  },
};
