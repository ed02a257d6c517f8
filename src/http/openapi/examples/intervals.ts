import type { IntervalResponse } from '../../schemas/interval.ts';
import type { LogLineResponse } from '../../schemas/log_line.ts';
import { ids, pageWith, type ExampleTable } from './example.ts';
import { completedRun } from './runs.ts';

const fingerprint = { hash: 'xxh64', rows: 4_933, sum: '11470238816044208151' };

const exported = {
  data_interval_start: completedRun.data_interval_start,
  data_interval_end: completedRun.data_interval_end,
  intervals: 1,
  status: 'exported',
  reason: null,
  latest_error: null,
  run_id: ids.run,
  manifest_run_id: ids.run,
  run_ids: [ids.run],
  generation: 1,
  rows: 4_933,
  rejected_rows: 0,
  bytes: 418_204,
  files: 1,
  kept_files: 0,
  earlier_files: 0,
  source_fingerprint: fingerprint,
  bucket_fingerprint: fingerprint,
  settled: true,
  settling_outcome: null,
  completed_at: completedRun.finished_at,
  expires_at: null,
  comparison: {
    compared_at: '2026-11-01T11:10:00.000Z',
    outcome: 'equal',
    bucket_rows: 4_933,
    source_rows: 4_933,
    added_rows: 0,
    missing_rows: 0,
  },
  held: null,
  taken_keys: 0,
} satisfies IntervalResponse;

const logLine = {
  timestamp: '2026-11-01T11:00:04.502Z',
  level: 'INFO',
  message: `Exported 4933 records of ${exported.data_interval_start} to ${exported.data_interval_end}. Manifest: ${completedRun.manifest_key}.`,
  instance_id: ids.run,
  log_source_id: ids.batch_export,
} satisfies LogLineResponse;

export const intervalExamples: ExampleTable = {
  'GET /batch_exports/{batch_export_id}/intervals': { responses: { 200: pageWith(exported) } },
  'GET /batch_exports/{id}/logs': { responses: { 200: pageWith(logLine) } },
};
