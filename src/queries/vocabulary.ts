import type { DialectReader } from './dialect_reader.ts';

/** The owner of a property. */
export type PropertyOwner = 'event' | 'person';

/** A property of a project. */
export interface KnownProperty {
  readonly key: string;
  readonly owners: readonly PropertyOwner[];
  /** Number of occurrences in the sample. */
  readonly seen: number;
}

/** The names in a project's rows, the most frequent first. */
export interface Vocabulary {
  readonly events: readonly string[];
  readonly properties: readonly KnownProperty[];
}

/** The newest events that are sampled for names; reading all events would take too long. */
const maxSampledEvents = 20_000;
/** Sampled events of each name for properties, so that rare events are covered. */
const sampledOfEach = 20;
const sampledRows = 600;
const maxNames = 1_000;

const eventNames = `select event, count() as seen
  from (select event from events order by inserted_at desc limit ${maxSampledEvents})
  group by event order by seen desc, event limit ${maxNames}`;

const newest: Readonly<Record<PropertyOwner, string>> = {
  event: `(select properties from (
    select event, properties from events order by inserted_at desc limit ${maxSampledEvents})
    limit ${sampledOfEach} by event limit ${sampledRows})`,
  person: `(select properties from persons limit ${sampledRows})`,
};

const keysOf = (owner: PropertyOwner): string =>
  `select pair.1 as key, count() as seen
   from (select arrayJoin(JSONExtractKeysAndValuesRaw(properties)) as pair from ${newest[owner]})
   group by key order by seen desc, key limit ${maxNames}`;

type Counted = readonly [name: string, seen: number];

/** Reads the names in a project's newest rows. Defined properties without any row come last. */
export async function readVocabulary(reader: DialectReader): Promise<Vocabulary> {
  const rowsOf = async (query: string): Promise<readonly Counted[]> =>
    (await reader.read(query, { rows: { defaultLimit: maxNames, maxRows: maxNames } }))
      .rows as readonly Counted[];
  const events = await rowsOf(eventNames);
  const byKey = new Map<string, KnownProperty>();
  const add = (key: string, owner: PropertyOwner, seen: number): void => {
    const known = byKey.get(key);
    const owners = new Set([...(known?.owners ?? []), owner]);
    byKey.set(key, { key, owners: [...owners], seen: (known?.seen ?? 0) + seen });
  };
  for (const owner of ['event', 'person'] as const)
    for (const [key, seen] of await rowsOf(keysOf(owner))) add(key, owner, seen);
  for (const owner of ['event', 'person'] as const)
    for (const key of reader.schema.properties.get(owner)?.keys() ?? [])
      if (!byKey.has(key)) add(key, owner, 0);
  return {
    events: events.map(([name]) => name),
    properties: [...byKey.values()].sort((one, other) => other.seen - one.seen),
  };
}
