import type { DialectReader } from '../../dialect_reader.ts';

/** Whose property it is. */
export type PropertyOwner = 'event' | 'person';

/** A property that a project has. */
export interface KnownProperty {
  readonly key: string;
  readonly owners: readonly PropertyOwner[];
  /** How often it was met. */
  readonly seen: number;
  /** Whether most of its values are numbers. */
  readonly isNumber: boolean;
}

/** A text that a property often has. */
export interface KnownValue {
  readonly text: string;
  readonly key: string;
  readonly owner: PropertyOwner;
}

/** The names that a project's own rows have, the most frequent first. */
export interface Vocabulary {
  readonly events: readonly string[];
  readonly properties: readonly KnownProperty[];
  readonly values: readonly KnownValue[];
}

/** So many of the newest events tell which names there are; all of a project would take too long. */
const maxSampledEvents = 20_000;
/** So many of them of each name tell properties, so that rare events are heard as well. */
const sampledOfEach = 20;
const sampledRows = 600;
const maxNames = 1_000;
/** Values that are longer are texts rather than names. */
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

/** JSON texts of values: to read them here costs less than in the query. */
const valuesOf = (owner: PropertyOwner): string =>
  `select pair.1 as key, pair.2 as json, count() as seen
   from (select arrayJoin(JSONExtractKeysAndValuesRaw(properties)) as pair from ${newest[owner]})
   where startsWith(json, '"') and length(json) <= ${maxValueLength}
   group by key, json order by seen desc, key, json limit ${maxValues}`;

type Counted = readonly [name: string, seen: number];
type CountedKey = readonly [...counted: Counted, numbers: number];

/** Reads which names a project's newest rows have. */
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

/** What definitions say of properties goes before what their values look like; those that no row has come last. */
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

/** Properties of events and of persons that have one key are one property of two owners. */
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
