import { eventAliases, propertyAliases } from './known_names.ts';
import type { Mention } from './mentions.ts';
import type { KnownProperty, Vocabulary } from './vocabulary.ts';
import { keysOf, stemsOf } from './words.ts';

/** Looks up names by words. */
export interface NameIndex {
  /** A name with the same parts, or with these words as its common name. */
  exact(said: string): Mention | undefined;
  /** The names that contain these parts. */
  parts(said: string): readonly Mention[];
}

/** Keeps the first of several items with the same key, which is the most frequent one. */
const firstByKey = <Item>(
  items: readonly Item[],
  keyed: (item: Item) => readonly string[],
): ReadonlyMap<string, Item> =>
  new Map(items.toReversed().flatMap((item) => keyed(item).map((key) => [key, item] as const)));

/** The item of the first key that has one. */
const firstOf = <Item>(keys: readonly string[], map: ReadonlyMap<string, Item>): Item | undefined =>
  keys.map((key) => map.get(key)).find((item) => item !== undefined);

const sortedStems = (name: string): string => [...stemsOf(name)].sort().join(' ');

/** The items by each stem of their names, in their order. */
function byStem<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): ReadonlyMap<string, ReadonlySet<Item>> {
  const found = new Map<string, Set<Item>>();
  for (const item of items)
    for (const stem of stemsOf(nameOf(item))) found.set(stem, (found.get(stem) ?? new Set()).add(item));
  return found;
}

/** The items whose names have all stems. */
function withAllStems<Item>(
  [first, ...rest]: readonly string[],
  items: ReadonlyMap<string, ReadonlySet<Item>>,
): readonly Item[] {
  const ofFirst = first === undefined ? [] : [...(items.get(first) ?? [])];
  return ofFirst.filter((item) => rest.every((stem) => items.get(stem)?.has(item)));
}

/** Creates an index of a project's names and the common names of analytics libraries. */
export function createNameIndex({ events, properties, values }: Vocabulary): NameIndex {
  const eventsByKey = firstByKey(events, keysOf);
  const eventsByStems = firstByKey(events, (name) => [sortedStems(name)]);
  const [eventsByStem, propertiesByStem] = [
    byStem(events, (name) => name),
    byStem(properties, ({ key }) => key),
  ];
  const exactEvents = new Set(events);
  const propertiesByKey = firstByKey(properties, ({ key }) => keysOf(key));
  const propertiesByName = new Map(properties.map((property) => [property.key, property]));
  const valuesByText = firstByKey(values, ({ text }) => [text.toLowerCase()]);

  const event = (said: string, name: string): Mention => ({ kind: 'event', said, name });
  const property = (said: string, { key, owners, isNumber }: KnownProperty): Mention => ({
    kind: 'property',
    said,
    property: { key, owners, isNumber },
  });
  const eventOf = (said: string, keys: readonly string[]): string | undefined =>
    exactEvents.has(said)
      ? said
      : (firstOf(keys, eventsByKey) ?? firstOf(keys, eventAliases) ?? reordered(said));
  /** `completed orders` is `order_completed`. */
  const reordered = (said: string): string | undefined => {
    const stems = sortedStems(said);
    return stems.includes(' ') ? eventsByStems.get(stems) : undefined;
  };
  const propertyOf = (said: string, keys: readonly string[]): KnownProperty | undefined => {
    const own = propertiesByName.get(said) ?? firstOf(keys, propertiesByKey);
    if (own) return own;
    const known = firstOf(keys, propertyAliases) ?? [];
    return known.flatMap((name) => propertiesByName.get(name) ?? [])[0];
  };

  return {
    exact: (said) => {
      const keys = keysOf(said);
      if (keys.length === 0) return undefined;
      const name = eventOf(said, keys);
      if (name !== undefined) return event(said, name);
      const captures = propertyOf(said, keys);
      if (captures) return property(said, captures);
      const value = valuesByText.get(said.toLowerCase());
      return (
        value && {
          kind: 'value',
          said,
          text: value.text,
          property: { key: value.key, owners: [value.owner], isNumber: false },
        }
      );
    },
    parts: (said) => {
      const stems = stemsOf(said);
      const ofEvents = withAllStems(stems, eventsByStem).map((name) => event(said, name));
      return ofEvents.length > 0
        ? ofEvents
        : withAllStems(stems, propertiesByStem).map((one) => property(said, one));
    },
  };
}
