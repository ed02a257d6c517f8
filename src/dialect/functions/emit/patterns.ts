import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { toPostgresPattern } from '../../compile/regular_expressions.ts';
import type { PatternUse } from '../../regular_expressions/translate.ts';
import { sql, type Sql } from '../../sql.ts';

/** The regular expression argument at an index. @throws DialectError if PostgreSQL cannot read it */
export const patternAt = (site: CallSite, index: number, use: PatternUse): Sql =>
  toPostgresPattern(argument(site, index), argumentNode(site, index), site.statement, use);

/** A replacement argument; `\0` is the whole match. */
export const replacementAt = (site: CallSite, index: number): Sql =>
  sql`replace(${argument(site, index).sql}, '\\0', '\\&')`;

/** What a replacement argument reads of the match. */
export function useOfReplacement(site: CallSite, index: number): PatternUse {
  const { constant } = argument(site, index);
  return typeof constant === 'string' && !/\\[1-9]/.test(constant) ? 'text' : 'groups';
}
