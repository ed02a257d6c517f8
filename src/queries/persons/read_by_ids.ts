import type { DialectReader, ReadOptions } from '../dialect_reader.ts';

/** So many are looked up by one statement. */
const idsAtOnce = 2_000;

/** The rows of a query that gives at most one for each of `{ids}`, however many those are. @throws QueryInvalid */
export async function readByIds(
  reader: DialectReader,
  query: string,
  ids: readonly string[],
): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for (let at = 0; at < ids.length; at += idsAtOnce) {
    const value = ids.slice(at, at + idsAtOnce);
    // A value is put in behind the parser, which would read so many of them slowly.
    const options: ReadOptions = {
      placeholders: new Map([['ids', { kind: 'value', value }]]),
      rows: { fallback: value.length, most: value.length },
    };
    found.push(...(await reader.read(query, options)).rows);
  }
  return found;
}
