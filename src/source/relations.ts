import type { Settings } from '../config/settings.ts';

/** A setting is not a valid relation name. The message contains the name and the expected form. */
export class InvalidRelationName extends Error {
  override readonly name = 'InvalidRelationName';
}

/** The source has no relation of the configured name, or exportd's role cannot see it. */
export class RelationNotFound extends Error {
  override readonly name = 'RelationNotFound';
}

/** The relations that exportd reads, quoted for SQL. */
export interface Relations {
  readonly events: string;
  readonly persons: string;
  readonly person_distinct_ids: string;
}

export type RelationSettings = Pick<
  Settings,
  'EXPORTD_EVENTS_RELATION' | 'EXPORTD_PERSONS_RELATION' | 'EXPORTD_PERSON_DISTINCT_IDS_RELATION'
>;

const identifier = String.raw`(?:[A-Za-z_][A-Za-z0-9_$]*|"(?:[^"\0]|"")+")`;
const qualifiedName = new RegExp(`^(?:(${identifier})\\.)?(${identifier})$`);

/**
 * Quotes `name`, `schema.name` or `"Any Schema"."Any Name"`. As in SQL, unquoted names are folded to lower case.
 * @throws InvalidRelationName
 */
export function quoteRelation(name: string): string {
  const match = qualifiedName.exec(name.trim());
  if (!match)
    throw new InvalidRelationName(
      `"${name}" is not a relation name: expected name, schema.name or "Any Schema"."Any Name".`,
    );
  return [match[1], match[2]]
    .filter((part) => part !== undefined)
    .map((part) => (part.startsWith('"') ? part : `"${part.toLowerCase()}"`))
    .join('.');
}

/** Quotes the configured relation names. @throws InvalidRelationName */
export const relationsOf = (settings: RelationSettings): Relations => ({
  events: quoteRelation(settings.EXPORTD_EVENTS_RELATION),
  persons: quoteRelation(settings.EXPORTD_PERSONS_RELATION),
  person_distinct_ids: quoteRelation(settings.EXPORTD_PERSON_DISTINCT_IDS_RELATION),
});

/** Column types of a relation by name. They are read from the catalog, since users may configure their own views. */
export type ColumnTypes = ReadonlyMap<string, string>;

/** A connection that runs statements about the catalog, or a query's, which may be in another thread. */
export interface CatalogConnection {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Reads the columns of relations from the catalog with one statement. Relations that do not exist are left out. */
export async function columnTypesOfExisting(
  connection: CatalogConnection,
  relations: readonly string[],
): Promise<ReadonlyMap<string, ColumnTypes>> {
  const { rows } = await connection.query(
    `select relation, json_agg(json_build_array(attname, format_type(atttypid, null)) order by attnum) as columns
     from unnest($1::text[]) as relation
     join pg_catalog.pg_attribute on attrelid = to_regclass(relation) and attnum > 0 and not attisdropped
     group by relation`,
    [relations],
  );
  const found = rows as readonly { relation: string; columns: [name: string, type: string][] }[];
  return new Map(found.map(({ relation, columns }) => [relation, new Map(columns)]));
}

/** Reads the columns of a relation. @throws RelationNotFound */
export const columnTypesOf = async (connection: CatalogConnection, relation: string): Promise<ColumnTypes> =>
  requireColumns(await columnTypesOfExisting(connection, [relation]), relation);

/** Returns the columns of a relation from those read before. @throws RelationNotFound */
export function requireColumns(present: ReadonlyMap<string, ColumnTypes>, relation: string): ColumnTypes {
  const columns = present.get(relation);
  if (!columns)
    throw new RelationNotFound(
      `Relation ${relation} does not exist in the source, or exportd's role cannot see it. Check the settings EXPORTD_EVENTS_RELATION, EXPORTD_PERSONS_RELATION and EXPORTD_PERSON_DISTINCT_IDS_RELATION; "exportd source check" says what is missing.`,
    );
  return columns;
}

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

/**
 * SQL: whether row security hides rows of a relation from exportd's role. Policies that show all rows hide none: those that
 * `exportd query setup` creates for other roles than its own.
 * @param relation SQL of its oid
 */
export const hidesRowsSql = (relation: string): string => `
  (row_security_active(${relation}) and not coalesce(
    (select bool_or(polpermissive and pg_get_expr(polqual, polrelid) = 'true') and bool_and(polpermissive)
     from pg_catalog.pg_policy where polrelid = ${relation} and polcmd in ('*', 'r')
       and exists (select from unnest(polroles) as granted where granted = 0 or pg_has_role(granted, 'usage'))),
    false))`;
