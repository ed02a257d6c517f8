/** A set of characters as ranges of code points, sorted and without overlap. */
export type CharacterSet = readonly CharacterRange[];

/** The first and the last code point of a range. */
export type CharacterRange = readonly [first: number, last: number];

/** Sorts ranges and joins those that overlap or touch. */
export function characterSet(ranges: readonly CharacterRange[]): CharacterSet {
  const joined: [number, number][] = [];
  for (const [first, last] of ranges.toSorted(([left], [right]) => left - right)) {
    const previous = joined.at(-1);
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

export const maxCodePoint = 0x10ffff;

export const everyCharacter: CharacterSet = [[0, maxCodePoint]];

/** All characters that are not in the set. */
export function negate(set: CharacterSet): CharacterSet {
  const gaps: CharacterRange[] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) gaps.push([next, first - 1]);
    next = last + 1;
  }
  return next > maxCodePoint ? gaps : [...gaps, [next, maxCodePoint]];
}

/** Whether two sets have a character in common. */
export function intersects(left: CharacterSet, right: CharacterSet): boolean {
  let [a, b] = [0, 0];
  for (;;) {
    const [one, other] = [left[a], right[b]];
    if (one === undefined || other === undefined) return false;
    if (one[0] <= other[1] && other[0] <= one[1]) return true;
    if (one[1] < other[1]) a += 1;
    else b += 1;
  }
}

/** A set of the characters in a list such as `a-z_`, where `-` is between two others. */
function listed(list: string): CharacterSet {
  const ranges = Array.from(list.matchAll(/([\s\S])-([\s\S])|[\s\S]/g), ([one, first = one, last = one]) => {
    const range: CharacterRange = [first.charCodeAt(0), last.charCodeAt(0)];
    return range;
  });
  return characterSet(ranges);
}

/** The characters that `\b` counts as parts of words. */
export const wordCharacters = listed('0-9A-Z_a-z');
export const newline = listed('\n');
const digits = listed('0-9');
const space = listed('\t\n\f\r ');

/** Classes that a letter after a backslash stands for. As in RE2, they are ASCII. */
export const escapedClasses: ReadonlyMap<string, CharacterSet> = new Map([
  ['d', digits],
  ['D', negate(digits)],
  ['s', space],
  ['S', negate(space)],
  ['w', wordCharacters],
  ['W', negate(wordCharacters)],
]);

/** Classes in brackets, such as `[:alpha:]`. As in RE2, they are ASCII. */
export const namedClasses: ReadonlyMap<string, CharacterSet> = new Map([
  ['alnum', listed('0-9A-Za-z')],
  ['alpha', listed('A-Za-z')],
  ['ascii', [[0, 0x7f]]],
  ['blank', listed('\t ')],
  [
    'cntrl',
    [
      [0, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ['digit', digits],
  ['graph', listed('!-~')],
  ['lower', listed('a-z')],
  ['print', listed(' -~')],
  ['punct', listed('!-/:-@[-`{-~')],
  ['space', listed('\t-\r ')],
  ['upper', listed('A-Z')],
  ['word', wordCharacters],
  ['xdigit', listed('0-9A-Fa-f')],
]);

/** Characters of larger sets are looked up in a table of all letters. */
const maxListed = 64;

/** The last code point with an upper or lower case. */
const lastLetter = 0x1e943;

/** Whether the set contains more than a few characters that are not ASCII. */
export const isLarge = (set: CharacterSet): boolean =>
  set.some(([, last]) => last >= 0x80) &&
  set.reduce((sum, [first, last]) => sum + last - first + 1, 0) > maxListed;

/** Adds the characters that differ from those of the set only by case. */
export function foldCase(set: CharacterSet): CharacterSet {
  const variants: CharacterRange[] = [];
  const add = (codePoint: number): void => {
    for (const variant of variantsOf(codePoint)) variants.push([variant, variant]);
  };
  if (!isLarge(set))
    for (const [first, last] of set)
      for (let codePoint = first; codePoint <= last; codePoint += 1) add(codePoint);
  else
    for (const codePoint of lettersWithVariants())
      if (set.some(([first, last]) => first <= codePoint && codePoint <= last)) add(codePoint);
  return characterSet([...set, ...variants]);
}

/** Letters that have the same capital as an ASCII letter: the long s and the Kelvin sign. */
const unusualVariants: Readonly<Record<string, readonly string[]>> = { S: ['ſ'], K: ['\u212a'] };

function variantsOf(codePoint: number): readonly number[] {
  const letter = String.fromCodePoint(codePoint);
  const [lower, upper] = [letter.toLowerCase(), letter.toUpperCase()];
  return [lower, upper, lower.toUpperCase(), ...(unusualVariants[upper] ?? [])]
    .filter((variant) => Array.from(variant).length === 1)
    .map((variant) => variant.codePointAt(0) ?? codePoint);
}

let letters: readonly number[] | undefined;

/** All letters that have another case; computed on first use, which takes 20 ms. */
function lettersWithVariants(): readonly number[] {
  letters ??= Array.from({ length: lastLetter + 1 }, (_, codePoint) => codePoint).filter((codePoint) =>
    variantsOf(codePoint).some((variant) => variant !== codePoint),
  );
  return letters;
}
