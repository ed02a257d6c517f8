import type { StartableRun } from '../../src/decisions/startable_runs.ts';

/** A run of one hour that the schedule created, with the fields that a test changes. */
export const startableRun = (changes: Partial<StartableRun> = {}): StartableRun => ({
  run_id: 'run',
  batch_export_id: 'export',
  batch_export_name: 'Shop',
  team_id: 1,
  model: 'events',
  destination_type: 'S3',
  interval: 'hour',
  timezone: 'UTC',
  destination_uri: 's3://bucket/events',
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
  backfill_id: null,
  trace_parent: null,
  ...changes,
});
