import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { toPostgresPattern } from '../../compile/regular_expressions.ts';
import { sql, type Sql } from '../../sql.ts';

/** The regular expression argument at an index. @throws DialectError if PostgreSQL cannot read it */
export const patternAt = (site: CallSite, index: number): Sql =>
  toPostgresPattern(argument(site, index), argumentNode(site, index), site.statement);

/** A replacement argument; `\0` is the whole match. */
export const replacementAt = (site: CallSite, index: number): Sql =>
  sql`replace(${argument(site, index).sql}, '\\0', '\\&')`;

/** Wraps a regular expression in a group, after its flags. */
export const wrapInGroup = (pattern: Sql): Sql =>
  sql`regexp_replace(${pattern}, '^(\\(\\?[a-z]+\\))?(.*)$', '\\1(\\2)')`;
