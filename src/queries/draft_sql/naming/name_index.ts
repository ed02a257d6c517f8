import { knownEvents, knownProperties } from './known_names.ts';
import type { Mention } from './mentions.ts';
import type { KnownProperty, Vocabulary } from './vocabulary.ts';
import { stemsOf } from './words.ts';

/** Finds the name that some words stand for. */
export interface NameIndex {
  /** A name with the same parts, or one that people know under these words. */
  exact(said: string): Mention | undefined;
  /** The names that have these parts among others. */
  parts(said: string): readonly Mention[];
}

const keyOf = (name: string): string => stemsOf(name).join('');

/** The first of names that have the same key stays: they come by their frequency. */
const firstByKey = <Item>(items: readonly Item[], keyed: (item: Item) => string): ReadonlyMap<string, Item> =>
  new Map(items.toReversed().map((item) => [keyed(item), item]));

/** An index of a project's names and those that analytics libraries give. */
export function createNameIndex({ events, properties, values }: Vocabulary): NameIndex {
  const eventsByKey = firstByKey(events, keyOf);
  const exactEvents = new Set(events);
  const propertiesByKey = firstByKey(properties, ({ key }) => keyOf(key));
  const propertiesByName = new Map(properties.map((property) => [property.key, property]));
  const valuesByText = firstByKey(values, ({ text }) => text.toLowerCase());

  const event = (said: string, name: string): Mention => ({ kind: 'event', said, name });
  const property = (said: string, { key, owners }: KnownProperty): Mention => ({
    kind: 'property',
    said,
    property: { key, owners },
  });
  const eventOf = (said: string, key: string): string | undefined =>
    exactEvents.has(said) ? said : (eventsByKey.get(key) ?? knownEvents.get(key) ?? reordered(said));
  /** `completed orders` is `order_completed`. */
  const reordered = (said: string): string | undefined => {
    const stems = [...stemsOf(said)].sort().join(' ');
    return stems.includes(' ')
      ? events.find((name) => [...stemsOf(name)].sort().join(' ') === stems)
      : undefined;
  };
  const propertyOf = (said: string, key: string): KnownProperty | undefined => {
    const own = propertiesByName.get(said) ?? propertiesByKey.get(key);
    if (own) return own;
    const known = knownProperties.get(key);
    const [first] = known ?? [];
    if (!known || first === undefined) return undefined;
    const there = known.flatMap((name) => propertiesByName.get(name) ?? []);
    return there[0];
  };

  return {
    exact: (said) => {
      const key = keyOf(said);
      if (key === '') return undefined;
      const name = eventOf(said, key);
      if (name !== undefined) return event(said, name);
      const found = propertyOf(said, key);
      if (found) return property(said, found);
      const value = valuesByText.get(said.toLowerCase());
      return (
        value && {
          kind: 'value',
          said,
          text: value.text,
          property: { key: value.key, owners: [value.owner] },
        }
      );
    },
    parts: (said) => {
      const stems = stemsOf(said);
      const isPart = (name: string): boolean => {
        const own = stemsOf(name);
        return stems.length > 0 && stems.every((stem) => own.includes(stem));
      };
      const ofEvents = events.filter(isPart).map((name) => event(said, name));
      return ofEvents.length > 0
        ? ofEvents
        : properties.filter(({ key }) => isPart(key)).map((one) => property(said, one));
    },
  };
}
