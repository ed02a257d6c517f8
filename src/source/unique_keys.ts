import type { CatalogConnection } from './relations.ts';

/**
 * SQL for the columns of each unique index of a relation, as JSON. Only indexes of all rows are unique keys.
 * @param relation SQL for its oid, qualified
 */
export const uniqueKeysSql = (relation: string): string => `(
  select coalesce(json_agg((
    select json_agg(attname) from pg_catalog.pg_attribute
    where attrelid = indrelid and attnum = any ((indkey::int2[])[0:indnkeyatts - 1])
  )), '[]')
  from pg_catalog.pg_index
  where indrelid = ${relation} and indisunique and indisvalid and indpred is null and indexprs is null
)`;

/** The columns of each unique index, by relation. A view has none. */
export type UniqueKeys = readonly (readonly string[])[];

/** Reads the unique keys of relations that exist. */
export async function uniqueKeysOf(
  connection: CatalogConnection,
  relations: readonly string[],
): Promise<ReadonlyMap<string, UniqueKeys>> {
  const { rows } = await connection.query(
    `select relation, ${uniqueKeysSql('to_regclass(relation)')} as keys from unnest($1::text[]) as relation`,
    [relations],
  );
  const found = rows as readonly { relation: string; keys: UniqueKeys }[];
  return new Map(found.map(({ relation, keys }) => [relation, keys]));
}
