import { sql, type Sql } from '../../sql.ts';
import { computeSqlOnce } from '../../compile/compute_once.ts';

/** Maximum nesting depth; deeper strings are not treated as JSON. */
const maxDepth = 24;

const inner = sql`'\\[([\\x01\\x02](,[\\x01\\x02])*)?\\]|\\{(\\x01:[\\x01\\x02](,\\x01:[\\x01\\x02])*)?\\}'`;

/**
 * Whether a string is JSON. PostgreSQL 15 cannot check this without failing, so regular expressions do: strings and
 * scalars become one character each, then arrays and objects are reduced from the inside out until one character is
 * left.
 */
export function isJson(text: Sql): Sql {
  const strings = sql`regexp_replace(${text}, '"([^"\\\\\\x01-\\x1f]|\\\\(["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"', chr(1), 'g')`;
  const scalars = sql`regexp_replace(bare.t, '-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?|true|false|null', chr(2), 'g')`;
  let folded = sql`regexp_replace(${scalars}, '[ \\t\\n\\r]*([][{}:,])[ \\t\\n\\r]*', '\\1', 'g')`;
  for (let depth = 0; depth < maxDepth; depth += 1)
    folded = sql`regexp_replace(${folded}, ${inner}, chr(2), 'g')`;
  return sql`(case when ${text} ~ '[\\x01-\\x08\\x0b\\x0c\\x0e-\\x1f]' then false when ${text} is not null then
    (select case when bare.t ~ '[^]\\x01 \\t\\n\\r[{}:,0-9.+eEtrufalsn-]' then false
      else btrim(${folded}, E' \\t\\n\\r') in (chr(1), chr(2)) end from (select ${strings} as t offset 0) as bare) end)`;
}

/** Escapes that jsonb cannot store, and numbers too long for it. */
const unreadable = (text: Sql): Sql =>
  sql`(${text} ~ '\\\\u0000' or regexp_replace(${text}, '\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g') ~* '\\\\ud[89a-f]'
    or ${text} ~ '[0-9][eE][-+]?[0-9]{3}')`;

/** Parses a string to jsonb; null if it is not JSON. */
export const parseJson = (text: Sql): Sql =>
  computeSqlOnce(
    [text],
    (t = sql``) => sql`(case when ${isJson(t)} and not ${unreadable(t)} then (${t})::jsonb end)`,
  );
