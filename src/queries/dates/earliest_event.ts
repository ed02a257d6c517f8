import { selectOf } from '../../dialect/build.ts';
import type { DialectReader } from '../dialect_reader.ts';

/** When the project's first event was; null without any. */
export async function earliestEvent(reader: DialectReader): Promise<Date | null> {
  const { rows } = await reader.read(selectOf('select min(toNullable(timestamp)) from events'));
  const earliest = rows[0]?.[0];
  return typeof earliest === 'string' ? new Date(earliest) : null;
}
