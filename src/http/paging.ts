import type { FastifyRequest } from 'fastify';
import { DateTime } from 'luxon';
import * as z from 'zod';
import type { Settings } from '../config/settings.ts';
import { parseRelativeDate } from '../filters/condition.ts';
import { momentBefore, type WeekStart } from '../filters/moments.ts';
import { timestampSchema } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { ApiError, invalid } from './api_error.ts';

/** The parameters of lists that are bounds. */
const boundNames = ['after', 'before', 'start', 'end', 'since', 'until'] as const;

/** PostgreSQL has no earlier year in the form of ISO 8601. */
const firstYear = 1;

const message =
  'Must be an ISO 8601 time with an offset, such as 2026-11-01T10:00:00Z, or a time ago, such as -2d or -12h.';

/** A bound of a list: a time, or a relative date such as `-2d`, as queries have them. */
export const listTime = z
  .union([timestampSchema, z.string().refine((text) => parseRelativeDate(text) !== null)], message)
  .meta({ examples: ['2026-11-01T10:00:00Z', '-2d'] });

/**
 * Replaces the relative dates among the parameters of a list by times, in the time zone of the project.
 * @throws ApiError 400 for a date that no calendar has
 */
export async function resolveListTimes<Query extends Readonly<Record<string, unknown>>>(
  pool: Pool,
  teamId: number,
  query: Query,
): Promise<Query> {
  const relative = boundNames.flatMap((name) => {
    const text = query[name];
    const date = typeof text === 'string' ? parseRelativeDate(text) : null;
    return date ? [{ name, date }] : [];
  });
  if (relative.length === 0) return query;
  const project = await readCalendar(pool, teamId);
  const present = DateTime.fromISO(project.now, { zone: project.timezone });
  const resolved = relative.map(({ name, date }) => {
    const moment = momentBefore(present, date, project);
    if (!moment.isValid || moment.year < firstYear) throw invalid('The time is too long ago.', name);
    return [name, moment.toUTC().toISO()] as const;
  });
  return { ...query, ...Object.fromEntries(resolved) };
}

/** The time zone and the weeks of a project, and the time of the database. */
async function readCalendar(
  pool: Pool,
  teamId: number,
): Promise<{ readonly timezone: string; readonly week_start_day: WeekStart; readonly now: string }> {
  const { rows } = await pool.query<{ timezone: string; week_start_day: WeekStart; now: string }>(
    'select timezone, week_start_day, clock_timestamp() as now from exportd.projects where id = $1',
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`Project ${teamId} does not exist.`);
  return found;
}

/** A page of a list. */
interface ListPage<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Item[];
}

type Addressed = Pick<FastifyRequest, 'protocol' | 'host' | 'hostname' | 'url' | 'socket' | 'ips'>;
type BaseUrl = Pick<Settings, 'EXPORTD_BASE_URL'>;

/**
 * The base URL of the service as the caller sees it, without a trailing slash. Without EXPORTD_BASE_URL, a Host header is
 * believed only if it names this machine or comes from a trusted proxy: links with another host would lead readers of a
 * response elsewhere. @throws ApiError 400
 */
function baseUrl(request: Addressed, settings: BaseUrl): string {
  const address =
    settings.EXPORTD_BASE_URL ??
    `${request.protocol}://${isOwnHost(request) ? request.host : localHost(request)}`;
  if (!URL.canParse(address)) throw invalid('The Host header is not a valid host name.', null);
  return new URL(address).href.replace(/\/+$/, '');
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i;

const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** Whether the host of a request is the machine itself, or what a trusted proxy says. */
function isOwnHost({ hostname, ips, socket }: Addressed): boolean {
  if (ips !== undefined && ips.length > 1) return true;
  return (
    loopback.test(hostname) || hostname.replace(/^\[|\]$/g, '') === withoutMapping(socket.localAddress ?? '')
  );
}

/** The address that a request was sent to. */
function localHost({ socket }: Addressed): string {
  const address = withoutMapping(socket.localAddress ?? '127.0.0.1');
  const host = address.includes(':') ? `[${address}]` : address;
  return socket.localPort === undefined ? host : `${host}:${socket.localPort}`;
}

/** The URL of a path in the request's project, below the root (`projects` or `environments`) that the request used. */
export const projectUrl = (request: Addressed, settings: BaseUrl, path: string): string =>
  baseUrl(request, settings) + request.url.split(/[/?]/).slice(0, 4).join('/') + path;

/** The URL of the request with these query parameters replaced; undefined removes a parameter. */
export function withParameters(
  request: Addressed,
  settings: BaseUrl,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const url = new URL(baseUrl(request, settings) + request.url);
  for (const [name, value] of Object.entries(parameters)) {
    url.searchParams.delete(name);
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url.href;
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

/** How items become responses. */
interface Conversion<Item, Schema extends z.ZodType> {
  /** What an item is, in messages. */
  readonly what: string;
  readonly schema: Schema;
  readonly convert: (item: Item) => z.input<Schema>;
  readonly logger: Logger;
}

/**
 * Converts items to responses. One that does not have the form of a response, for example because a newer version has
 * stored it, is logged and left out: it must not cost the others.
 */
export function toReadableResponses<Item extends { readonly id: string }, Schema extends z.ZodType>(
  items: readonly Item[],
  { what, schema, convert, logger }: Conversion<Item, Schema>,
): z.input<Schema>[] {
  return items.flatMap((item) => {
    try {
      const response = convert(item);
      schema.parse(response);
      return [response];
    } catch (error) {
      logger.error(
        { err: error, id: item.id },
        `This version of exportd cannot read a ${what}. Lists leave it out.`,
      );
      return [];
    }
  });
}

/** Converts one item. @throws ApiError 500 when this version cannot read it */
export function toReadableResponse<Item extends { readonly id: string }, Schema extends z.ZodType>(
  item: Item,
  conversion: Conversion<Item, Schema>,
): z.input<Schema> {
  const [response] = toReadableResponses([item], conversion);
  if (response === undefined) throw unreadable(conversion.what, item.id);
  return response;
}

/** The response to a request for what this version cannot read. */
export const unreadable = (what: string, id: string): ApiError =>
  new ApiError(
    500,
    'unreadable',
    `This version of exportd cannot read the ${what} ${id}, which a newer version may have stored. ` +
      "The server's log has the reason.",
  );

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
