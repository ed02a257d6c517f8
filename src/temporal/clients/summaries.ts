import type { StartableRun } from '../../decisions/startable_runs.ts';

/** Temporal documents a maximum of 400 bytes of JSON for a summary; this many are for the name. */
const maxNameBytes = 200;

/** Summarizes a run for the Temporal UI: `events of "Shop", 2026-11-01 10:00–11:00`, in UTC. */
export function runSummary(
  run: Pick<StartableRun, 'model' | 'batch_export_name' | 'data_interval_start' | 'data_interval_end'>,
): string {
  const [startDay = '', startTime = ''] = dateAndTime(run.data_interval_start);
  const [endDay = '', endTime = ''] = dateAndTime(run.data_interval_end);
  const end = startDay === endDay ? endTime : `${endDay} ${endTime}`;
  return `${run.model} of "${truncate(run.batch_export_name)}", ${startDay} ${startTime}–${end}`;
}

/** Summarizes a backfill for the Temporal UI. */
export const backfillSummary = (backfill: {
  readonly name: string;
  readonly start_at: string;
  readonly end_at: string;
}): string => `Backfill of "${truncate(backfill.name)}", ${backfill.start_at} to ${backfill.end_at}`;

/** Summarizes a delivery for the Temporal UI: `run.failed of "Shop" to https://example.com`. */
export const deliverySummary = (type: string, name: string, receiver: string): string =>
  `${type} of "${truncate(name)}" to ${receiver.slice(0, 100)}`;

/** Adds to a summary why the reconciler started the execution. */
export const withReason = (summary: string, reason: string | undefined): string =>
  reason === undefined ? summary : `${summary}. Started by the reconciler: ${reason}`;

const dateAndTime = (time: string): string[] => time.slice(0, 16).split('T');

/** Truncates a name between two characters, without control characters, which JSON escapes with six bytes. */
function truncate(name: string): string {
  let truncated = '';
  let bytes = 0;
  for (const character of name.replace(/\p{C}/gu, ' ')) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes > maxNameBytes) return `${truncated}…`;
    truncated += character;
  }
  return truncated;
}
