import type { StartableRun } from '../../decisions/startable_runs.ts';

/** Temporal documents 400 bytes of JSON for a summary, though a 1.29 server takes more; this much is for the name. */
const longestNameBytes = 200;

/** A run in one line for the Temporal UI: `events of "Shop", 2026-11-01 10:00–11:00`, times in UTC. */
export function runSummary(
  run: Pick<StartableRun, 'model' | 'batch_export_name' | 'data_interval_start' | 'data_interval_end'>,
): string {
  const [startDay = '', startTime = ''] = readable(run.data_interval_start);
  const [endDay = '', endTime = ''] = readable(run.data_interval_end);
  const end = startDay === endDay ? endTime : `${endDay} ${endTime}`;
  return `${run.model} of "${shortened(run.batch_export_name)}", ${startDay} ${startTime}–${end}`;
}

/** A backfill in one line for the Temporal UI. */
export const backfillSummary = (backfill: {
  readonly name: string;
  readonly start_at: string;
  readonly end_at: string;
}): string => `Backfill of "${shortened(backfill.name)}", ${backfill.start_at} to ${backfill.end_at}`;

/** The delivery of a notification in one line for the Temporal UI: `run.failed of "Shop" to https://example.com`. */
export const notificationSummary = (type: string, name: string, receiver: string): string =>
  `${type} of "${shortened(name)}" to ${receiver.slice(0, 100)}`;

const readable = (time: string): string[] => time.slice(0, 16).split('T');

/** A name without what JSON writes with six bytes, cut between two characters. */
function shortened(name: string): string {
  let short = '';
  let bytes = 0;
  for (const character of name.replace(/\p{C}/gu, ' ')) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes > longestNameBytes) return `${short}…`;
    short += character;
  }
  return short;
}
