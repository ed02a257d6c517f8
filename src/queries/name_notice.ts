import { buildSelect, buildTimeLiteral } from '@exportd/dialect/ast_builders';
import { nearestName } from '@exportd/dialect/query_text';
import { type DialectReader, openDialectReader } from './dialect_reader.ts';
import { readVocabulary, type Vocabulary } from './vocabulary.ts';
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
/** More names of a query are not searched, and none after so many that no row has: each of those reads all rows of its search. */
const maxSearched = 10;
const maxMissing = 3;

/** A search in so many of the newest rows, which the index of exports finds: reading all would be a query of its own. */
interface Search {
  readonly rows: string;
  readonly maxRows: number;
  /** The condition that a row has the name. */
  readonly has: string;
  readonly what: 'events' | 'persons';
}

const newestEvents = 'events where inserted_at > {since} order by inserted_at desc';
const searches: Readonly<Record<NameKind, Search>> = {
  event: { rows: newestEvents, maxRows: 1_000_000, has: 'event = {name}', what: 'events' },
  'event property': {
    rows: newestEvents,
    maxRows: 100_000,
    has: 'JSONHas(properties, {name})',
    what: 'events',
  },
  'person property': {
    rows: 'persons',
    maxRows: 100_000,
    has: 'JSONHas(properties, {name})',
    what: 'persons',
  },
};

const count = (rows: number): string => rows.toLocaleString('en-US');

/** `No event purchas in 90 days. Did you mean purchase?` */
function sentenceOf({ kind, name }: MentionedName, isWhole: boolean, near: string | null): string {
  const { maxRows, what } = searches[kind];
  const shown = /^[\w$./:-]{1,100}$/.test(name) ? name : JSON.stringify(name.slice(0, 100));
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
    let vocabulary: Promise<Vocabulary> | undefined;
    const readNames = () => (vocabulary ??= readVocabulary(reader));
    let missing = 0;
    for (const name of unknown) {
      if (missing === maxMissing) break;
      const notice = await searchName(name, context, reader, readNames);
      cache.set(team_id, name, notice);
      missing += Number(notice !== null);
    }
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
  readNames: () => Promise<Vocabulary>,
): Promise<string | null> {
  const { kind, name } = mentioned;
  const owner = kind === 'person property' ? 'person' : 'event';
  if (kind !== 'event' && reader.schema.properties.get(owner)?.has(name)) return null;
  const { rows, maxRows, has } = searches[kind];
  const since = buildTimeLiteral(new Date(now.getTime() - days * 86_400_000).toISOString());
  const exists = async (select: string): Promise<boolean> =>
    (await reader.read(buildSelect(select, { since, name: { value: name } }))).rows.length > 0;
  const column = kind === 'event' ? 'event' : 'properties';
  if (await exists(`select 1 from (select ${column} from ${rows} limit ${maxRows}) where ${has} limit 1`))
    return null;
  // The index alone knows whether there are more rows.
  const hasMore = await exists(`select 1 from ${rows} limit 1 offset ${maxRows}`);
  const { events, properties } = await readNames();
  const known =
    kind === 'event'
      ? events
      : properties.filter(({ owners }) => owners.includes(owner)).map(({ key }) => key);
  // The sample may have it in older rows.
  const others = known.filter((one) => one !== name);
  return sentenceOf(mentioned, !hasMore, nearestName(name, others));
}
