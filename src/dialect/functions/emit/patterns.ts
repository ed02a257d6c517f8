import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { patternOf } from '../../compile/regular_expressions.ts';
import { sql, type Sql } from '../../sql.ts';

/** The regular expression at a place. @throws DialectError for one that PostgreSQL cannot read */
export const patternAt = (site: CallSite, index: number): Sql =>
  patternOf(argument(site, index), argumentNode(site, index), site.statement);

/** A replacement: `\0` is all that was found. */
export const replacementAt = (site: CallSite, index: number): Sql =>
  sql`replace(${argument(site, index).sql}, '\\0', '\\&')`;

/** A regular expression as a group, behind its flags. */
export const asGroup = (pattern: Sql): Sql =>
  sql`regexp_replace(${pattern}, '^(\\(\\?[a-z]+\\))?(.*)$', '\\1(\\2)')`;
