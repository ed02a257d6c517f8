/**
 * SQL condition: rules of the bucket may have deleted objects of a row's interval, so that it is exported again only
 * when a person requests it. The rule of `isExpired` (src/domain/expiration.ts) for the first object that expires.
 */
export const isExpiredInterval = (row: string): string => expiresWithin(row, '');

/** SQL condition: a row's interval has expired after a time, which is an SQL expression. */
export const hasExpiredSince = (row: string, time: string): string =>
  expiresWithin(row, `and ${expiration} > ${time}`);

/** When the first object of an interval expires. */
const expiration =
  'least(interval.expires_at, interval.completed_at + make_interval(days => owner.retention_days))';

const expiresWithin = (row: string, condition: string): string => `exists (
  select from exportd.intervals interval join exportd.batch_exports owner on owner.id = interval.batch_export_id
  where interval.batch_export_id = ${row}.batch_export_id
    and interval.data_interval_start = ${row}.data_interval_start
    and interval.data_interval_end = ${row}.data_interval_end
    and ${expiration} <= clock_timestamp() ${condition})`;
