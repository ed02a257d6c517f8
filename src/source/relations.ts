import type pg from 'pg';
import type { Settings } from '../config/settings.ts';

/** A relation's name in the settings that cannot be one; the message names it and says what is expected. */
export class InvalidRelationName extends Error {
  override readonly name = 'InvalidRelationName';
}

/** A relation that the settings name and the source does not have, or that exportd's role may not see. */
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
 * Quotes `name`, `schema.name` or `"Any Schema"."Any Name"`; as in SQL, names without quotes are folded to lower case.
 * @throws InvalidRelationName
 */
export function quoteRelation(name: string): string {
  const match = qualifiedName.exec(name.trim());
  if (!match)
    throw new InvalidRelationName(
      `"${name}" is not the name of a relation: expected name, schema.name or "Any Schema"."Any Name".`,
    );
  return [match[1], match[2]]
    .filter((part) => part !== undefined)
    .map((part) => (part.startsWith('"') ? part : `"${part.toLowerCase()}"`))
    .join('.');
}

/** The relations of the settings. @throws InvalidRelationName */
export const relationsOf = (settings: RelationSettings): Relations => ({
  events: quoteRelation(settings.EXPORTD_EVENTS_RELATION),
  persons: quoteRelation(settings.EXPORTD_PERSONS_RELATION),
  person_distinct_ids: quoteRelation(settings.EXPORTD_PERSON_DISTINCT_IDS_RELATION),
});

/** The columns of a relation: name to type. They are asked for, since users bring views of their own. */
export type ColumnTypes = ReadonlyMap<string, string>;

type Connection = Pick<pg.ClientBase, 'query'>;

/** Reads the columns of relations from the catalogue, by one statement; those that the source has not are left out. */
export async function columnTypesOfPresent(
  connection: Connection,
  relations: readonly string[],
): Promise<ReadonlyMap<string, ColumnTypes>> {
  const { rows } = await connection.query<{ relation: string; columns: [name: string, type: string][] }>(
    `select relation, json_agg(json_build_array(attname, format_type(atttypid, null)) order by attnum) as columns
     from unnest($1::text[]) as relation
     join pg_catalog.pg_attribute on attrelid = to_regclass(relation) and attnum > 0 and not attisdropped
     group by relation`,
    [relations],
  );
  return new Map(rows.map(({ relation, columns }) => [relation, new Map(columns)]));
}

/** Reads the columns of a relation that has to be there. @throws RelationNotFound */
export const columnTypesOf = async (connection: Connection, relation: string): Promise<ColumnTypes> =>
  presentColumns(await columnTypesOfPresent(connection, [relation]), relation);

/** The columns of a relation that has to be among those that are there. @throws RelationNotFound */
export function presentColumns(present: ReadonlyMap<string, ColumnTypes>, relation: string): ColumnTypes {
  const columns = present.get(relation);
  if (!columns)
    throw new RelationNotFound(`The source has no relation ${relation}, or exportd may not see it.`);
  return columns;
}
