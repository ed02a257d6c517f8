import pg from 'pg';
import { bucketInterval, bucketWidthMs } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { SourceConnections } from './source_connection.ts';

/**
 * How long a statement may run before its interval is read in shorter ones. Shorter than the 30 s after which a standby
 * cancels a statement that holds back its replay by default; long enough for 20 million rows.
 */
const maxStatementMs = 20_000;

/** Cancelled by its timeout, and by a standby whose replay it held back. */
const tooLongCodes: readonly (string | undefined)[] = ['57014', '40001'];
const isTooLong = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && tooLongCodes.includes(error.code);

/**
 * Reads an interval with one statement. One that runs for too long is cancelled and replaced by one for each of up to 64
 * subintervals.
 * @param read reads one of them, with the settings of its statement
 * @returns what was read, in order
 */
export async function* readDivided<Result>(
  { statementTimeoutMs }: Pick<SourceConnections, 'statementTimeoutMs'>,
  interval: DataInterval,
  signal: AbortSignal | undefined,
  read: (interval: DataInterval, settings: Readonly<Record<string, string>>) => Promise<Result>,
): AsyncGenerator<Result> {
  const subintervals = subintervalsOf(interval);
  if (subintervals.length <= 1) {
    yield await read(interval, {});
    return;
  }
  const statement_timeout = String(Math.min(maxStatementMs, statementTimeoutMs));
  let whole: { readonly result: Result } | undefined;
  try {
    whole = { result: await read(interval, { statement_timeout }) };
  } catch (error) {
    if (signal?.aborted || !isTooLong(error)) throw error;
  }
  if (whole) yield whole.result;
  else
    for (const subinterval of subintervals)
      yield* readDivided({ statementTimeoutMs }, subinterval, signal, read);
}

/** Divides an interval into subintervals of whole milliseconds, as many as it has buckets. */
function subintervalsOf(interval: DataInterval): DataInterval[] {
  const width_ms = bucketWidthMs(interval);
  const start = new Date(interval.start).getTime();
  const length = new Date(interval.end).getTime() - start;
  return Array.from({ length: Math.ceil(length / width_ms) }, (_, index) =>
    bucketInterval(interval, { width_ms }, index),
  );
}
