import type { Settings } from '../config/settings.ts';
import type { DataInterval } from '../domain/intervals.ts';

const hourMs = 3_600_000;

/**
 * How long after its end an interval may lack a manifest: the longest delay of its run, the longest wait for open
 * transactions, and once its length for the export.
 */
export const gracePeriodMs =
  (
    settings: Pick<
      Settings,
      'EXPORTD_JITTER_LONG' | 'EXPORTD_JITTER_SHORT_FRACTION' | 'EXPORTD_SETTLE_TIMEOUT'
    >,
  ) =>
  ({ start, end }: DataInterval): number => {
    const length = Date.parse(end) - Date.parse(start);
    const jitter =
      length >= hourMs ? settings.EXPORTD_JITTER_LONG : length * settings.EXPORTD_JITTER_SHORT_FRACTION;
    return jitter + Math.min(length, settings.EXPORTD_SETTLE_TIMEOUT) + length;
  };
