import type { Name } from '../ast.ts';
import { keywordsRequiringAs, operatorFunctions, quotedAsFirstName, reservedWords } from '../keywords.ts';
import { writeQuoted } from '../quoting.ts';

const plain = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** Words at the beginning of a window that are not the name of another one. */
const windowWords: ReadonlySet<string> = new Set(['PARTITION', 'ORDER', 'ROWS', 'RANGE', 'GROUPS']);

const printed = (name: Name, keywords: ReadonlySet<string>): string =>
  plain.test(name.text) && !keywords.has(name.text.toUpperCase()) ? name.text : writeQuoted(name.text, '`');

/** A name, in backticks where it is no plain word or a keyword. */
export const printName = (name: Name): string => printed(name, reservedWords);

/** The name of a table and what it is called: words that may follow it need quotes too. */
export const printTableName = (name: Name): string => printed(name, keywordsRequiringAs);

/** A name behind a point, where any word is a name. */
export const printMemberName = (name: Name): string => printed(name, new Set());

export const printWindowName = (name: Name): string => printed(name, windowWords);

/** A path such as `person.properties.email`. */
export function printPath([first, ...rest]: readonly Name[]): string {
  if (first === undefined) return '';
  return [printed(first, quotedAsFirstName), ...rest.map(printMemberName)].join('.');
}

/** Words whose brackets are not those of a call. */
const specialCalls: ReadonlySet<string> = new Set([
  ...[...reservedWords].filter((word) => !operatorFunctions.has(word)),
  ...['COLUMNS', 'INTERVAL', 'ROLLUP', 'CUBE'],
]);

/** The name of a function before its brackets. */
export const printFunctionName = (name: Name): string => printed(name, specialCalls);

/** Any name in backticks. */
export const quoteName = (name: Name): string => writeQuoted(name.text, '`');
