import type { RunSpec } from '../../src/domain/run_state.ts';

/** What the first run of an interval of events is to export, with the fields that a test changes. */
export const runSpecOf = (changes: Partial<RunSpec> = {}): RunSpec => ({
  batch_export_id: 'export',
  team_id: 1,
  model: 'events',
  config_version: 1,
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
  purpose: { kind: 'interval' },
  retry_number: 0,
  allow_shrink: false,
  continues_run_id: null,
  ...changes,
});
