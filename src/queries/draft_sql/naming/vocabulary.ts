import type { DialectReader } from '../../dialect_reader.ts';

/** The owner of a property. */
export type PropertyOwner = 'event' | 'person';

/** A property of a project. */
export interface KnownProperty {
  readonly key: string;
  readonly owners: readonly PropertyOwner[];
  /** Number of occurrences in the sample. */
  readonly seen: number;
  /** Whether most of its values are numbers. */
  readonly isNumber: boolean;
}

/** A frequent string value of a property. */
export interface KnownValue {
  readonly text: string;
  readonly key: string;
  readonly owner: PropertyOwner;
}

/** The names in a project's rows, the most frequent first. */
export interface Vocabulary {
  readonly events: readonly string[];
  readonly properties: readonly KnownProperty[];
  readonly values: readonly KnownValue[];
}

/** The newest events that are sampled for names; reading all events would take too long. */
const maxSampledEvents = 20_000;
/** Sampled events of each name for properties, so that rare events are covered. */
const sampledOfEach = 20;
const sampledRows = 600;
const maxNames = 1_000;
/** Longer values are prose rather than names. */
const maxValueLength = 60;
const maxValues = 2_000;

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
  `select pair.1 as key, count() as seen, countIf(match(pair.2, '^-?[0-9]')) as numbers
   from (select arrayJoin(JSONExtractKeysAndValuesRaw(properties)) as pair from ${newest[owner]})
   group by key order by seen desc, key limit ${maxNames}`;

/** Values as JSON; parsing them here is cheaper than in the query. */
const valuesOf = (owner: PropertyOwner): string =>
  `select pair.1 as key, pair.2 as json, count() as seen
   from (select arrayJoin(JSONExtractKeysAndValuesRaw(properties)) as pair from ${newest[owner]})
   where startsWith(json, '"') and length(json) <= ${maxValueLength}
   group by key, json order by seen desc, key, json limit ${maxValues}`;

type Counted = readonly [name: string, seen: number];
type CountedKey = readonly [...counted: Counted, numbers: number];

/** Reads the names in a project's newest rows. */
export async function readVocabulary(reader: DialectReader): Promise<Vocabulary> {
  const rowsOf = async <Row>(query: string): Promise<readonly Row[]> =>
    (await reader.read(query, { rows: { defaultLimit: maxValues, maxRows: maxValues } }))
      .rows as readonly Row[];
  const events = await rowsOf<Counted>(eventNames);
  const keys: (readonly [PropertyOwner, readonly CountedKey[]])[] = [];
  const values: (KnownValue & { readonly seen: number })[] = [];
  for (const owner of ['event', 'person'] as const) {
    keys.push([owner, await rowsOf<CountedKey>(keysOf(owner))]);
    for (const [key, json, seen] of await rowsOf<readonly [string, string, number]>(valuesOf(owner)))
      values.push({ text: String(JSON.parse(json)), key, owner, seen });
  }
  return {
    events: events.map(([name]) => name),
    properties: withDefinitions(joinedProperties(keys), reader.schema),
    values: values
      .sort((one, other) => other.seen - one.seen)
      .map(({ text, key, owner }) => ({ text, key, owner })),
  };
}

/** Definitions override what values look like; defined properties without any row come last. */
function withDefinitions(
  properties: readonly KnownProperty[],
  { eventProperties, personProperties }: DialectReader['schema'],
): readonly KnownProperty[] {
  const defined = [
    ...[...eventProperties].map(([key, type]) => ({ key, type, owner: 'event' as const })),
    ...[...personProperties].map(([key, type]) => ({ key, type, owner: 'person' as const })),
  ];
  const byKey = new Map(properties.map((property) => [property.key, property]));
  for (const { key, type, owner } of defined) {
    const known = byKey.get(key) ?? { key, owners: [owner], seen: 0, isNumber: false };
    byKey.set(key, { ...known, isNumber: type === 'numeric' });
  }
  return [...byKey.values()];
}

/** Merges properties of events and persons with the same key into one with two owners. */
function joinedProperties(
  keys: readonly (readonly [PropertyOwner, readonly CountedKey[]])[],
): readonly KnownProperty[] {
  const byKey = new Map<string, KnownProperty>();
  for (const [owner, counted] of keys)
    for (const [key, seen, numbers] of counted) {
      const known = byKey.get(key);
      byKey.set(key, {
        key,
        owners: [...(known?.owners ?? []), owner],
        seen: (known?.seen ?? 0) + seen,
        isNumber: known?.isNumber ?? 2 * numbers > seen,
      });
    }
  return [...byKey.values()].sort((one, other) => other.seen - one.seen);
}
