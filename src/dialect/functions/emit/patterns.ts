import { argument, type CallSite, nodeAt } from '../../compile/functions/site.ts';
import { patternOf } from '../../compile/regular_expressions.ts';
import { sql, type Sql } from '../../sql.ts';

/** The regular expression at a place. @throws DialectError for one that PostgreSQL cannot read */
export const patternAt = (site: CallSite, place: number): Sql =>
  patternOf(argument(site, place), nodeAt(site, place), site.statement);

/** A replacement: `\0` is all that was found. */
export const replacementAt = (site: CallSite, place: number): Sql =>
  sql`replace(${argument(site, place).sql}, '\\0', '\\&')`;

/** A regular expression as a group, behind its flags. */
export const asGroup = (pattern: Sql): Sql =>
  sql`regexp_replace(${pattern}, '^(\\(\\?[a-z]+\\))?(.*)$', '\\1(\\2)')`;
