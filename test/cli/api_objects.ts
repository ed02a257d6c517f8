import type { BatchExport, BatchExportRun } from '../../src/client/client.ts';

/** Objects as the API sends them, for tests of what commands print. */

const created_at = '2026-11-01T10:00:00.000Z';
const summary =
  'Exported 1 Nov 08:00 – 1 Nov 10:00 UTC. Not exported: anything before 1 Nov 08:00, before the export was created.';

export const anExport = (more: Partial<BatchExport> = {}): BatchExport => ({
  id: '01900000-0000-7000-8000-000000000001',
  team_id: 1,
  name: 'Clicks',
  model: 'events',
  destination: { type: 'S3', config: { bucket_name: 'my-bucket' }, access_key_id_end: null },
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: null,
  offset_day: null,
  paused: false,
  created_at,
  last_updated_at: created_at,
  last_paused_at: null,
  start_at: null,
  end_at: null,
  latest_runs: [],
  dialect_query: null,
  retention_days: null,
  schema: null,
  lag: { intervals: 0, seconds: 0, last_completed_interval_end: created_at, gaps: [] },
  condition: {
    severity: 'ok',
    cause: 'ok',
    summary,
    since: null,
    owner: 'none',
    affected: { intervals: 0, ranges: [] },
    actions: [],
    incident: null,
    coverage: { sentence: summary, ranges: [], is_complete: true, next_end: null, backfills: null },
  },
  ...more,
});

export const aRun = (more: Partial<BatchExportRun> = {}): BatchExportRun => ({
  id: '01900000-0000-7000-8000-000000000002',
  status: 'Completed',
  status_detail: null,
  records_completed: 295,
  latest_error: null,
  data_interval_start: '2026-11-01T09:00:00.000Z',
  data_interval_end: created_at,
  cursor: null,
  created_at,
  finished_at: created_at,
  last_updated_at: created_at,
  records_total_count: 295,
  batch_export: '01900000-0000-7000-8000-000000000001',
  bytes: 1_000,
  files: 1,
  generation: 1,
  manifest_key: 'events/_manifests/1.json',
  backfill_id: null,
  allow_shrink: false,
  temporal_ui: null,
  ...more,
});
