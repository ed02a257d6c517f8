import { DateTime } from 'luxon';

/** A word of a prompt, or what stands in quotes in it. */
export interface Word {
  /** As it is written, without quotes. */
  readonly text: string;
  readonly kind: 'word' | 'quoted' | 'number' | 'date' | 'sign';
}

const chunks = [
  String.raw`["“](?<quoted>[^"”]+)["”]`,
  String.raw`(?<![\p{L}\p{N}])['‘](?<single>[^'’]+)['’](?![\p{L}\p{N}])`,
  '`(?<ticks>[^`]+)`',
  String.raw`(?<date>\d{4}-\d\d-\d\d)(?!\d)`,
  String.raw`(?<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\p{L}\d_])`,
  String.raw`(?<sign>->|→|>=|<=|!=|=|>|<)`,
  String.raw`(?<word>[$/\p{L}\p{N}_](?:[\p{L}\p{N}_$@/'’]|[.:+-](?=[\p{L}\p{N}_$]))*)`,
];
const chunk = new RegExp(chunks.join('|'), 'gu');

const numberWords = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

/** No calendar has `2026-02-30`, so nothing can be asked of it. */
const isDay = (text: string): boolean => DateTime.fromISO(text, { zone: 'utc' }).isValid;

/** The words of a prompt. Punctuation is left out, `isn't` is two words, `person's` is `person`. */
export function wordsOf(prompt: string): readonly Word[] {
  const text = prompt.replaceAll(/n['’]t(?![\p{L}\p{N}])/gu, ' not');
  return [...text.matchAll(chunk)].map(({ groups = {} }): Word => {
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

/** A word without the endings of plural and past, so that `purchases` and `purchased` are the same. */
const stemOf = (word: string): string =>
  endings.reduce((stem, [ending, instead]) => stem.replace(ending, instead), word.toLowerCase());

const partsOf = (name: string): readonly string[] =>
  name
    .replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== '');

/** The stems of a name's parts: `$pageLeave` and `page_leave` are `pag` and `leav`. */
export const stemsOf = (name: string): readonly string[] => partsOf(name).map(stemOf);

/** Names that have one of these in common are one: `page views` and `$pageview`, `signed up` and `signup`. */
export const keysOf = (name: string): readonly string[] => {
  const parts = partsOf(name).map((part) => part.toLowerCase());
  const last = parts.at(-1);
  if (last === undefined) return [];
  return [...new Set([parts.map(stemOf).join(''), [...parts.slice(0, -1), stemOf(last)].join('')])];
};
