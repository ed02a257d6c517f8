import { table } from './output.ts';
import type { JsonObject } from './commands/service_command.ts';

/** Formats entries of the interval ledger. */
export const intervalTable = (intervals: readonly JsonObject[]): string[] =>
  table(
    ['interval start', 'interval end', 'status', 'generation', 'rows', 'bytes', 'compared', 'run', 'detail'],
    intervals.map((interval) => [
      interval.data_interval_start,
      interval.data_interval_end,
      interval.status,
      interval.generation,
      interval.rows,
      interval.bytes,
      comparisonOf(interval),
      interval.run_id,
      detailOf(interval),
    ]),
  );

const comparisonOf = ({ comparison }: JsonObject): string | null => {
  if (typeof comparison !== 'object' || comparison === null) return null;
  const { outcome, compared_at } = comparison as JsonObject;
  return `${String(outcome)} ${String(compared_at)}`;
};

/** What a person has to know beside the status: the error, the reason, or how many intervals a range has. */
function detailOf({ status, reason, latest_error, intervals, expires_at }: JsonObject): unknown {
  const isRange = typeof intervals === 'number' && intervals > 1;
  if (status === 'expired') return `expired ${String(expires_at)}`;
  if (['failed', 'gap', 'held', 'running'].includes(String(status)) && latest_error !== null)
    return latest_error;
  return isRange ? `${intervals} intervals${typeof reason === 'string' ? `: ${reason}` : ''}` : reason;
}
