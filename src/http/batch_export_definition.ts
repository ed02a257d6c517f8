import { type BatchExportDefinition, requireConsistent, supportsOffsets } from '../domain/batch_export.ts';
import type { UpdateBody } from './schemas/batch_export.ts';

/** The fields of a definition that a body sets directly; destination configs are stored in versions instead. */
export type WritableDefinition = Omit<BatchExportDefinition, 'destination_type' | 'config_version'>;

/** The value of a field that is omitted on creation or reset with null. */
export const defaultDefinition: Omit<WritableDefinition, 'name'> = {
  model: 'events',
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
  retention_days: null,
};

/** Formats a time as responses do, so that sending a response back changes nothing. */
export const toUtc = (time: string): string => new Date(time).toISOString();

/**
 * Applies a body to a definition. An omitted field keeps its value, null resets it to its default, and a new interval
 * resets the offsets that do not apply to it.
 * @throws CommandRejected when the fields are inconsistent.
 */
export function definitionFrom(base: WritableDefinition, body: UpdateBody): WritableDefinition {
  const interval = body.interval ?? base.interval;
  const intervalChanges = interval !== base.interval;
  const keptHour = intervalChanges && !supportsOffsets(interval) ? 0 : base.offset_hour;
  // A day of the week is not a day of the month.
  const keptDay = intervalChanges ? 0 : base.offset_day;
  const wanted: WritableDefinition = {
    name: body.name ?? base.name,
    model: orDefault(body.model, base.model, defaultDefinition.model),
    interval,
    timezone: orDefault(body.timezone, base.timezone, defaultDefinition.timezone),
    offset_hour: orDefault(body.offset_hour, keptHour, 0),
    offset_day: orDefault(body.offset_day, keptDay, 0),
    start_at: timeOr(body.start_at, base.start_at),
    end_at: timeOr(body.end_at, base.end_at),
    dialect_query: textOr(body.dialect_query, base.dialect_query),
    retention_days: orDefault(body.retention_days, base.retention_days, null),
  };
  requireConsistent(wanted, body);
  return wanted;
}

const orDefault = <Value>(given: Value | null | undefined, kept: Value, fallback: Value): Value =>
  given === undefined ? kept : (given ?? fallback);

const timeOr = (given: string | null | undefined, kept: string | null): string | null =>
  given === undefined ? kept : given === null ? null : toUtc(given);

/** An empty query means no query. */
const textOr = (given: string | null | undefined, kept: string | null): string | null =>
  given === undefined ? kept : given === '' ? null : given;
