import { buildSelect } from '../../dialect/ast_builders.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { needsEarliest } from './date_range.ts';
import type { DateRange } from './schema.ts';

/** The time of the project's first event, for a range that starts with it; null for other ranges, or without events. */
export async function earliestFor(
  range: DateRange | null | undefined,
  reader: DialectReader,
): Promise<Date | null> {
  if (!needsEarliest(range)) return null;
  const { rows } = await reader.read(buildSelect('select min(toNullable(timestamp)) from events'));
  const earliest = rows[0]?.[0];
  return typeof earliest === 'string' ? new Date(earliest) : null;
}
