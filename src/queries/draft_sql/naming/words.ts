import { DateTime } from 'luxon';

/** A word or a quoted string of a prompt. */
export interface Word {
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
export const stemsOf = (name: string): readonly string[] => partsOf(name).map(stemOf);

/** The keys of a name. Names that share a key are equal: `page views` and `$pageview`, `signed up` and `signup`. */
export const keysOf = (name: string): readonly string[] => {
  const parts = partsOf(name).map((part) => part.toLowerCase());
  const last = parts.at(-1);
  if (last === undefined) return [];
  return [...new Set([parts.map(stemOf).join(''), [...parts.slice(0, -1), stemOf(last)].join('')])];
};
