import * as z from 'zod';
import type { Pool } from '../journal/database.ts';
import { invalid } from './api_error.ts';
import { type Addressed, type BaseUrl, withParameters } from './request_urls.ts';

/** A page of a list. */
interface ListPage<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Item[];
}

/** A page by `limit` and `offset`. `read` is the number of its items, where they may be fewer than `limit`. */
export function offsetPage<Item>(
  request: Addressed,
  settings: BaseUrl,
  window: { readonly limit: number; readonly offset: number },
  list: { readonly count: number; readonly results: Item[]; readonly read?: number },
): ListPage<Item> {
  const { limit, offset } = window;
  const following = offset + Math.max(1, list.read ?? limit);
  const urlAt = (start: number) =>
    withParameters(request, settings, {
      limit: String(limit),
      offset: start > 0 ? String(start) : undefined,
    });
  return {
    count: list.count,
    next: following < list.count ? urlAt(following) : null,
    previous: offset > 0 ? urlAt(Math.max(0, offset - limit)) : null,
    results: list.results,
  };
}

/** Encodes where a page of rows starts, for one of its neighbours. */
export const encodeCursor = (...values: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');

/** A time in a cursor, as ISO 8601 in UTC. */
export const cursorTime = z
  .string()
  .refine((text) => !Number.isNaN(Date.parse(text)))
  .transform((text) => new Date(text).toISOString());

/** Decodes the values of a cursor. @throws ApiError 400 */
export function decodeCursor<Values>(text: string, schema: z.ZodType<Values>): Values {
  try {
    return schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  } catch {
    throw invalid(
      'Invalid cursor. Follow the `next` and `previous` URLs of a page instead of building one.',
      'cursor',
    );
  }
}

/** Counts the rows of a list. `rest` is the statement from FROM on. */
export async function countRows(pool: Pool, rest: string, values: readonly unknown[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`select count(*) as count ${rest}`, [...values]);
  return rows[0]?.count ?? 0;
}

/** A page of rows, and the rows that its neighbours start at; null where there is none. */
interface Page<Row> {
  readonly page: readonly Row[];
  /** The last row, if rows follow it. */
  readonly next: Row | null;
  /** The first row, if rows precede it. */
  readonly previous: Row | null;
}

/**
 * Makes a page of rows that were read with one row more than `limit`, which shows whether there are more.
 * `backwards`: the rows were read from the cursor towards the start. `continued`: there was a cursor.
 */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  { backwards, continued }: { readonly backwards: boolean; readonly continued: boolean },
): Page<Row> {
  const hasMore = rows.length > limit;
  const page = rows.slice(0, limit);
  if (backwards) page.reverse();
  const hasNext = backwards || hasMore;
  const hasPrevious = backwards ? hasMore : continued;
  return {
    page,
    next: (hasNext ? page.at(-1) : undefined) ?? null,
    previous: (hasPrevious ? page[0] : undefined) ?? null,
  };
}
