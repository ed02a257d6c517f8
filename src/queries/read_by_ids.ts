import type { PlaceholderValue, JsonValue } from '../dialect/resolve/placeholders.ts';
import type { DialectReader } from './dialect_reader.ts';

/** Maximum ids per statement. */
const idBatchSize = 2_000;

/**
 * Runs a query that returns at most one row for each of `{ids}`, in batches.
 * @param values of other placeholders
 * @throws QueryError
 */
export async function readByIds(
  reader: DialectReader,
  query: string,
  ids: readonly string[],
  values: Readonly<Record<string, JsonValue>> = {},
): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for (let at = 0; at < ids.length; at += idBatchSize) {
    const batch = ids.slice(at, at + idBatchSize);
    // Placeholders are filled in after parsing: parsing this many literals would be slow.
    const placeholders = new Map(
      Object.entries({ ...values, ids: batch }).map(([name, value]): [string, PlaceholderValue] => [
        name,
        { kind: 'value', value },
      ]),
    );
    const rows = { defaultLimit: batch.length, maxRows: batch.length };
    found.push(...(await reader.read(query, { placeholders, rows })).rows);
  }
  return found;
}
