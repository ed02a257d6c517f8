import { DateTime } from 'luxon';
import type { KnownProperty, Vocabulary } from './vocabulary.ts';

/** The meaning of one or more words of a prompt. `said` is as written, without quotes. */
export type Mention =
  | { readonly kind: 'event'; readonly said: string; readonly name: string }
  | { readonly kind: 'property'; readonly said: string; readonly property: KnownProperty }
  /** A number or a date. A `reserved` word belongs to the rules. */
  | { readonly kind: 'number' | 'date' | 'reserved'; readonly said: string }
  /** No name. `candidates` are the names of the project that contain it, if there are several. */
  | { readonly kind: 'text'; readonly said: string; readonly candidates: readonly string[] };

/** Maximum words of a name. */
const maxNameWords = 5;

/**
 * Finds the names of a project in a prompt. Words become the longest run that is a name: one of the project, compared by
 * stems (`signed up`, `sign-ups` and `signups` are `signed_up`), or a common name (`page views`); else a part that only one
 * name contains (`purchases` for `purchase_completed`).
 * @param isReserved whether a word in lower case belongs to the rules; it is then a name only in quotes or with others
 */
export function mentionsOf(
  prompt: string,
  vocabulary: Vocabulary,
  isReserved: (word: string) => boolean,
): readonly Mention[] {
  const words = wordsOf(prompt);
  const index = createNameIndex(vocabulary);
  const isName = ({ kind, text }: Word): boolean => kind === 'word' && !isReserved(text.toLowerCase());
  const canBeName = (run: readonly Word[]): boolean =>
    (run.length === 1 && run[0]?.kind === 'quoted') ||
    (run.every(({ kind }) => kind === 'word' || kind === 'number') && run.some(isName));
  const single = ({ kind, text }: Word): Mention => {
    if (kind === 'number' || kind === 'date') return { kind, said: text };
    if (kind === 'word' && isReserved(text.toLowerCase())) return { kind: 'reserved', said: text };
    const names = kind === 'word' ? index.containing(text) : [];
    const [only] = names;
    if (names.length === 1 && only) return only;
    return { kind: 'text', said: text, candidates: names.map(nameOf) };
  };
  /** The name of most words at the start of a run, else its first word, and the number of words. */
  const longestName = (run: readonly Word[]): readonly [Mention, number] => {
    for (let length = run.length; length > 0; length--) {
      const named = run.slice(0, length);
      const mention = canBeName(named) && index.exact(named.map(({ text }) => text).join(' '));
      if (mention) return [mention, length];
    }
    const [first] = run;
    if (first === undefined) throw new Error('No word is left.');
    return [single(first), 1];
  };
  const mentions: Mention[] = [];
  for (let at = 0; at < words.length;) {
    const [mention, length] = longestName(words.slice(at, at + maxNameWords));
    mentions.push(mention);
    at += length;
  }
  return mentions;
}

const nameOf = (mention: Mention): string =>
  mention.kind === 'event' ? mention.name : mention.kind === 'property' ? mention.property.key : mention.said;

/** A word or a quoted string of a prompt. */
interface Word {
  /** As written, without quotes. */
  readonly text: string;
  readonly kind: 'word' | 'quoted' | 'number' | 'date' | 'sign';
}

const tokenPatterns = [
  String.raw`["“](?<quoted>[^"”]+)["”]`,
  String.raw`(?<![\p{L}\p{N}])['‘](?<single>[^'’]+)['’](?![\p{L}\p{N}])`,
  '`(?<ticks>[^`]+)`',
  String.raw`(?<date>\d{4}-\d\d-\d\d)(?!\d)`,
  String.raw`(?<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\p{L}\d_])`,
  String.raw`(?<sign>->|→|>=|<=|!=|=|>|<)`,
  String.raw`(?<word>[$/\p{L}\p{N}_](?:[\p{L}\p{N}_$@/'’]|[.:+-](?=[\p{L}\p{N}_$]))*)`,
];
const tokenPattern = new RegExp(tokenPatterns.join('|'), 'gu');

const numberWords = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

/** Excludes invalid dates such as `2026-02-30`. */
const isDay = (text: string): boolean => DateTime.fromISO(text, { zone: 'utc' }).isValid;

/** Splits a prompt into words. Punctuation is dropped, `isn't` becomes two words, `person's` becomes `person`. */
export function wordsOf(prompt: string): readonly Word[] {
  const text = prompt.replaceAll(/n['’]t(?![\p{L}\p{N}])/gu, ' not');
  return [...text.matchAll(tokenPattern)].map(({ groups = {} }): Word => {
    const quoted = groups.quoted ?? groups.single ?? groups.ticks;
    if (quoted !== undefined) return { text: quoted.trim(), kind: 'quoted' };
    if (groups.date !== undefined) return { text: groups.date, kind: isDay(groups.date) ? 'date' : 'word' };
    if (groups.sign !== undefined) return { text: groups.sign, kind: 'sign' };
    if (groups.number !== undefined) return { text: groups.number.replaceAll(',', ''), kind: 'number' };
    const word = (groups.word ?? '').replace(/['’]s?$/u, '');
    const counted = numberWords.indexOf(word.toLowerCase());
    return counted === -1 ? { text: word, kind: 'word' } : { text: String(counted + 1), kind: 'number' };
  });
}

const endings: readonly (readonly [RegExp, string])[] = [
  [/(?<=...)ies$/, 'y'],
  [/(?<=ss|x|ch|sh)es$/, ''],
  [/(?<=.[^sui])s$/, ''],
  [/(?<=...)ing$/, ''],
  [/(?<=...)ed$/, ''],
  [/(?<=...)e$/, ''],
  [/([bdgmnpt])\1$/, '$1'],
];

/** A word without plural and past endings, so that `purchases` and `purchased` are equal. */
const stemOf = (word: string): string =>
  endings.reduce((stem, [ending, instead]) => stem.replace(ending, instead), word.toLowerCase());

const partsOf = (name: string): readonly string[] =>
  name
    .replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== '');

/** The stems of a name's parts: `$pageLeave` and `page_leave` are `pag` and `leav`. */
const stemsOf = (name: string): readonly string[] => partsOf(name).map(stemOf);

/** The keys of a name. Names that share a key are equal: `page views` and `$pageview`, `signed up` and `signup`. */
export const keysOf = (name: string): readonly string[] => {
  const parts = partsOf(name).map((part) => part.toLowerCase());
  const last = parts.at(-1);
  if (last === undefined) return [];
  return [...new Set([parts.map(stemOf).join(''), [...parts.slice(0, -1), stemOf(last)].join('')])];
};

/** Events that analytics libraries send automatically, by their common names. */
const eventAliases: Readonly<Record<string, string>> = {
  'page view': '$pageview',
  view: '$pageview',
  visit: '$pageview',
  'page visit': '$pageview',
  'page hit': '$pageview',
  click: '$autocapture',
  'page leave': '$pageleave',
  screen: '$screen',
  'screen view': '$screen',
  exception: '$exception',
  error: '$exception',
};

/** Properties by their common names; the first one that the project has is used. */
const propertyAliases: Readonly<Record<string, readonly string[]>> = {
  country: ['$geoip_country_name', '$geoip_country_code'],
  city: ['$geoip_city_name'],
  region: ['$geoip_subdivision_1_name'],
  continent: ['$geoip_continent_name'],
  url: ['$current_url'],
  page: ['$pathname', '$current_url'],
  path: ['$pathname'],
  'operating system': ['$os'],
  device: ['$device_type', '$device'],
  language: ['$browser_language', '$language'],
  referrer: ['$referring_domain', '$referrer'],
  source: ['utm_source', '$utm_source'],
  campaign: ['utm_campaign', '$utm_campaign'],
  medium: ['utm_medium', '$utm_medium'],
};

interface NameIndex {
  /** A name with the same parts in any order, or with these words as its common name. */
  exact(said: string): Mention | undefined;
  /** The events, else the properties, that contain these parts. */
  containing(said: string): readonly Mention[];
}

/** The items by the keys of their names. The first of several items with a key, which is the most frequent, stays. */
function firstByKey<Item>(
  items: readonly Item[],
  keyed: (item: Item) => readonly string[],
): (keys: readonly string[]) => Item | undefined {
  const byKey = new Map(items.toReversed().flatMap((item) => keyed(item).map((key) => [key, item] as const)));
  return (keys) => keys.map((key) => byKey.get(key)).find((item) => item !== undefined);
}

/** `completed orders` is `order_completed`. Names of one part are found by `keysOf`. */
const sortedStems = (name: string): readonly string[] => {
  const stems = stemsOf(name);
  return stems.length > 1 ? [[...stems].sort().join(' ')] : [];
};

/** Creates an index of a project's names and the common names of analytics libraries. */
function createNameIndex({ events, properties }: Vocabulary): NameIndex {
  const eventByKey = firstByKey(events, keysOf);
  const eventByStems = firstByKey(events, sortedStems);
  const eventByAlias = firstByKey(Object.entries(eventAliases), ([alias]) => keysOf(alias));
  const propertyByKey = firstByKey(properties, ({ key }) => keysOf(key));
  const propertyByName = new Map(properties.map((property) => [property.key, property]));
  const propertyByAlias = firstByKey(Object.entries(propertyAliases), ([alias]) => keysOf(alias));
  const exactEvents = new Set(events);

  const eventOf = (said: string, keys: readonly string[]): string | undefined =>
    exactEvents.has(said)
      ? said
      : (eventByKey(keys) ?? eventByAlias(keys)?.[1] ?? eventByStems(sortedStems(said)));
  const propertyOf = (said: string, keys: readonly string[]): KnownProperty | undefined => {
    const [, names = []] = propertyByAlias(keys) ?? [];
    return (
      propertyByName.get(said) ??
      propertyByKey(keys) ??
      names.flatMap((name) => propertyByName.get(name) ?? [])[0]
    );
  };
  const contains = (name: string, stems: readonly string[]): boolean => {
    const parts = new Set(stemsOf(name));
    return stems.length > 0 && stems.every((stem) => parts.has(stem));
  };
  return {
    exact: (said) => {
      const keys = keysOf(said);
      const name = eventOf(said, keys);
      if (name !== undefined) return { kind: 'event', said, name };
      const property = propertyOf(said, keys);
      return property && { kind: 'property', said, property };
    },
    containing: (said) => {
      const stems = stemsOf(said);
      const named = events.filter((name) => contains(name, stems));
      return named.length > 0
        ? named.map((name) => ({ kind: 'event', said, name }))
        : properties
            .filter(({ key }) => contains(key, stems))
            .map((property) => ({ kind: 'property', said, property }));
    },
  };
}
