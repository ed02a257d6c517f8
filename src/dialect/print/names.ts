import type { Name } from '../ast.ts';
import { keywordsRequiringAs, operatorFunctions, quotedAsFirstName, reservedWords } from '../keywords.ts';
import { quoteString } from '../quoting.ts';

const plain = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** Keywords at the start of a window, which cannot be the name of its base window. */
const windowWords: ReadonlySet<string> = new Set(['PARTITION', 'ORDER', 'ROWS', 'RANGE', 'GROUPS']);

const printed = (name: Name, keywords: ReadonlySet<string>): string =>
  plain.test(name.text) && !keywords.has(name.text.toUpperCase()) ? name.text : quoteString(name.text, '`');

/** A name, quoted with backticks if necessary. */
export const printName = (name: Name): string => printed(name, reservedWords);

/** The name or alias of a table, which must not be confused with the next clause. */
export const printTableName = (name: Name): string => printed(name, keywordsRequiringAs);

/** A name after a dot, where any word is allowed. */
export const printNameAfterDot = (name: Name): string => printed(name, new Set());

export const printWindowName = (name: Name): string => printed(name, windowWords);

/** A path such as `person.properties.email`. */
export function printPath([first, ...rest]: readonly Name[]): string {
  if (first === undefined) return '';
  return [printed(first, quotedAsFirstName), ...rest.map(printNameAfterDot)].join('.');
}

/** Keywords whose parentheses are not those of a call. */
const specialCalls: ReadonlySet<string> = new Set([
  ...[...reservedWords].filter((word) => !operatorFunctions.has(word)),
  ...['COLUMNS', 'INTERVAL', 'ROLLUP', 'CUBE'],
]);

/** The name of a function in a call. */
export const printFunctionName = (name: Name): string => printed(name, specialCalls);

/** A name that is always quoted. */
export const quoteName = (name: Name): string => quoteString(name.text, '`');
