import type { PlaceholderValue, JsonValue } from '../dialect/resolve/placeholders.ts';
import type { DialectReader } from './dialect_reader.ts';

/** So many are looked up by one statement. */
const idBatchSize = 2_000;

/**
 * The rows of a query that gives at most one for each of `{ids}`, however many those are.
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
    // Values are put in behind the parser, which would read so many of them slowly.
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
