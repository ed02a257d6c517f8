import { argument, type CallSite, nodeAt } from '../../compile/functions/site.ts';
import { bind, sql, type Sql } from '../../sql.ts';

/** What is written otherwise in the regular expressions of PostgreSQL than in those that analysts know (RE2). */
const otherwise: Readonly<Record<string, string>> = { b: '\\y', B: '\\Y', z: '\\Z', A: '\\A', a: '\\x07' };

/** What PostgreSQL has nothing for. */
const missing = /\\[pPCQE]|\(\?P?<|(?!^)\(\?[imsU-]+[:)]/;

/**
 * A regular expression as PostgreSQL reads it. One that is written out is translated, another is taken as it is.
 * @throws DialectError for what cannot be translated, or is none
 */
export function patternAt(site: CallSite, place: number): Sql {
  const value = argument(site, place);
  return typeof value.constant === 'string'
    ? bind(translated(site, place, value.constant), 'text')
    : value.sql;
}

function translated(site: CallSite, place: number, pattern: string): string {
  const found = missing.exec(pattern);
  if (found !== null)
    throw site.statement.error(
      `This regular expression has ${found[0]}, which is not supported.`,
      nodeAt(site, place),
      found[0].startsWith('(?')
        ? 'Flags such as (?i) stand at its beginning.'
        : 'Name the characters in brackets.',
    );
  try {
    new RegExp(pattern.replace(/^\(\?[imsU-]+\)/, ''), 'v');
  } catch {
    try {
      new RegExp(pattern.replace(/^\(\?[imsU-]+\)/, ''));
    } catch {
      throw site.statement.error('This is no regular expression.', nodeAt(site, place));
    }
  }
  const flags = /^\(\?([imsU-]+)\)/.exec(pattern);
  const body = flags === null ? pattern : pattern.slice(flags[0].length);
  const written = body.replaceAll(/\\([\s\S])/g, (whole, letter: string) => otherwise[letter] ?? whole);
  return flags?.[1]?.includes('i') === true ? `(?i)${written}` : written;
}

/** A replacement: `\0` is all that was found. */
export function replacementAt(site: CallSite, place: number): Sql {
  return sql`replace(${argument(site, place).sql}, '\\0', '\\&')`;
}
