/**
 * SQL condition: rules of the bucket may have deleted objects of a row's interval, so that it is exported again only
 * when a person requests it. The rule of `isExpired` (src/domain) for the first object that expires.
 * @param condition a further condition on the first expiration
 */
export const isExpiredInterval = (row: string, condition = ''): string => `exists (
  select from exportd.intervals interval join exportd.batch_exports owner on owner.id = interval.batch_export_id
  where interval.batch_export_id = ${row}.batch_export_id
    and interval.data_interval_start = ${row}.data_interval_start
    and interval.data_interval_end = ${row}.data_interval_end
    and ${expiration} <= clock_timestamp() ${condition})`;

/** SQL: when the first object of an interval expires. */
export const expiration =
  'least(interval.expires_at, interval.completed_at + make_interval(days => owner.retention_days))';
