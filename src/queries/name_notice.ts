import { buildSelect, buildTimeLiteral } from '@exportd/dialect/ast_builders';
import { nearestName } from '@exportd/dialect/query_text';
import { type DialectReader, openDialectReader } from './dialect_reader.ts';
import { readVocabulary } from './vocabulary.ts';
import { type MentionedName, mentionedNames, type NameKind } from './mentioned_names.ts';
import type { QueryContext } from './query_kind.ts';

/** What a thread remembers of the names of projects, so that their rows are not read for each query. */
export interface NameCache {
  /** What is said of a name; null if rows have it, undefined if it is not known. */
  get(teamId: number, name: MentionedName): string | null | undefined;
  set(teamId: number, name: MentionedName, notice: string | null): void;
}

/** A name that rows have is not searched again for an hour; one that none has may come with the next event. */
const rememberedMs = { found: 3_600_000, missing: 60_000 };
const maxRemembered = 20_000;

/** @param now a clock in milliseconds, for tests */
export function createNameCache(now = () => performance.now()): NameCache {
  const known = new Map<string, { readonly notice: string | null; readonly until: number }>();
  const keyOf = (teamId: number, { kind, name }: MentionedName): string => `${teamId} ${kind} ${name}`;
  return {
    get: (teamId, name) => {
      const found = known.get(keyOf(teamId, name));
      return found && found.until > now() ? found.notice : undefined;
    },
    set: (teamId, name, notice) => {
      const key = keyOf(teamId, name);
      known.delete(key);
      const age = notice === null ? rememberedMs.found : rememberedMs.missing;
      known.set(key, { notice, until: now() + age });
      const [oldest] = known.keys();
      if (known.size > maxRemembered && oldest !== undefined) known.delete(oldest);
    },
  };
}

const days = 90;
/** More names of a query are not searched. */
const maxSearched = 10;

/** Where a name is searched: at most so many of the newest rows, by an index, since reading all would be a query of its own. */
const searches: Readonly<
  Record<
    NameKind,
    { readonly rows: string; readonly maxRows: number; readonly has: string; readonly what: string }
  >
> = {
  event: {
    rows: 'select event from events where inserted_at > {since} order by inserted_at desc limit 1000000',
    maxRows: 1_000_000,
    has: 'event = {name}',
    what: 'events',
  },
  'event property': {
    rows: 'select properties from events where inserted_at > {since} order by inserted_at desc limit 100000',
    maxRows: 100_000,
    has: 'JSONHas(properties, {name})',
    what: 'events',
  },
  'person property': {
    rows: 'select properties from persons limit 100000',
    maxRows: 100_000,
    has: 'JSONHas(properties, {name})',
    what: 'persons',
  },
};

const count = (rows: number): string => rows.toLocaleString('en-US');

/** `No event purchas in 90 days. Did you mean purchase?` */
function sentenceOf({ kind, name }: MentionedName, rowsRead: number, near: string | null): string {
  const { maxRows, what } = searches[kind];
  const shown = /^[\w$./:-]{1,100}$/.test(name) ? name : JSON.stringify(name.slice(0, 100));
  const isWhole = rowsRead < maxRows;
  const newest = what === 'events' ? `the newest ${count(maxRows)} events` : `${count(maxRows)} persons`;
  const where = isWhole ? (what === 'events' ? ` in ${days} days` : '') : ` among ${newest}`;
  const suggestion = near === null ? '' : ` Did you mean ${near}?`;
  return `No ${kind} ${shown}${where}.${suggestion}`;
}

/**
 * What a response says of the names in its query that no row has; null if all exist. It reads rows for names that are not
 * remembered, and the names of the project only to suggest one.
 * @throws QueryError, and the errors of the warehouse
 */
export async function findNameNotice(
  query: unknown,
  context: QueryContext,
  cache: NameCache,
): Promise<string | null> {
  const { team_id } = context.project;
  const names = mentionedNames(query).slice(0, maxSearched);
  const unknown = names.filter((name) => cache.get(team_id, name) === undefined);
  if (unknown.length > 0) {
    const reader = await openDialectReader(context);
    for (const name of unknown) cache.set(team_id, name, await searchName(name, context, reader));
  }
  const notices = names
    .map((name) => cache.get(team_id, name))
    .filter((notice) => typeof notice === 'string');
  return notices.length === 0 ? null : notices.join(' ');
}

/** What is said of a name that no row has; null if one has it. */
async function searchName(
  mentioned: MentionedName,
  { now }: Pick<QueryContext, 'now'>,
  reader: DialectReader,
): Promise<string | null> {
  const { kind, name } = mentioned;
  const owner = kind === 'person property' ? 'person' : 'event';
  if (kind !== 'event' && reader.schema.properties.get(owner)?.has(name)) return null;
  const { rows, has } = searches[kind];
  const since = buildTimeLiteral(new Date(now.getTime() - days * 86_400_000).toISOString());
  const values = { since, name: { value: name } };
  const found = await reader.read(buildSelect(`select 1 from (${rows}) where ${has} limit 1`, values));
  if (found.rows.length > 0) return null;
  const counted = await reader.read(buildSelect(`select count() from (${rows})`, values));
  const vocabulary = await readVocabulary(reader);
  const known =
    kind === 'event'
      ? vocabulary.events
      : vocabulary.properties.filter(({ owners }) => owners.includes(owner)).map(({ key }) => key);
  // The sample may have it in older rows.
  const near = nearestName(
    name,
    known.filter((one) => one !== name),
  );
  return sentenceOf(mentioned, Number(counted.rows[0]?.[0] ?? 0), near);
}
