import type { PlaceholderValue, PlainValue } from '../dialect/resolve/placeholders.ts';
import type { DialectReader } from './dialect_reader.ts';

/** So many are looked up by one statement. */
const idsAtOnce = 2_000;

/**
 * The rows of a query that gives at most one for each of `{ids}`, however many those are.
 * @param values of other placeholders
 * @throws QueryInvalid
 */
export async function readByIds(
  reader: DialectReader,
  query: string,
  ids: readonly string[],
  values: Readonly<Record<string, PlainValue>> = {},
): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for (let at = 0; at < ids.length; at += idsAtOnce) {
    const some = ids.slice(at, at + idsAtOnce);
    // Values are put in behind the parser, which would read so many of them slowly.
    const placeholders = new Map(
      Object.entries({ ...values, ids: some }).map(([name, value]): [string, PlaceholderValue] => [
        name,
        { kind: 'value', value },
      ]),
    );
    const rows = { fallback: some.length, most: some.length };
    found.push(...(await reader.read(query, { placeholders, rows })).rows);
  }
  return found;
}
