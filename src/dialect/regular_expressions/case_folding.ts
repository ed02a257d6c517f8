import { characterSet, type CharacterRange, type CharacterSet } from './character_set.ts';

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
