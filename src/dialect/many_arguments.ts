/** What takes more arguments than a function of PostgreSQL may have. */
import { commaList, joinSql, type Sql, sql } from './sql.ts';

/** PostgreSQL's limit. */
const maxArguments = 100;

/** A jsonb array of jsonb items. */
export function jsonArray(items: readonly Sql[]): Sql {
  if (items.length === 0) return sql`'[]'::jsonb`;
  return items.length <= maxArguments
    ? sql`jsonb_build_array(${commaList(items)})`
    : sql`to_jsonb(array[${commaList(items)}])`;
}

/** A jsonb object of keys and jsonb values in turn. Of equal keys the last one counts. */
export function jsonObject(parts: readonly Sql[]): Sql {
  if (parts.length <= maxArguments) return sql`jsonb_build_object(${commaList(parts)})`;
  return sql`(${joinSql(groupsOf(parts, maxArguments).map(jsonObject), ' || ')})`;
}

/** Texts as one, without nulls. */
export function concatenation(texts: readonly Sql[]): Sql {
  if (texts.length === 0) return sql`''::text`;
  if (texts.length <= maxArguments) return sql`concat(${commaList(texts)})`;
  return concatenation(groupsOf(texts, maxArguments).map(concatenation));
}

const groupsOf = (fragments: readonly Sql[], size: number): readonly (readonly Sql[])[] =>
  Array.from({ length: Math.ceil(fragments.length / size) }, (_, group) =>
    fragments.slice(group * size, (group + 1) * size),
  );
