import type { PropertyType } from '@exportd/dialect/schema';
import type { Property, PropertyScope } from '@exportd/dialect/types';
import type { Pool } from '../journal/database.ts';
import type { InferredType } from './inferred_types.ts';

/** Who has a property. Groups have those of their type. */
export const propertyScopes: readonly PropertyScope[] = [
  'event',
  'person',
  'group_0',
  'group_1',
  'group_2',
  'group_3',
  'group_4',
];
export const propertyTypes: readonly PropertyType[] = ['numeric', 'boolean', 'datetime', 'string'];

/**
 * The type of a property of a project. Queries read the property as that type, and unconvertible values as null. An
 * inferred type is for queries that reject the text of the property; all others read the text.
 */
export interface PropertyDefinition extends Property {
  readonly team_id: number;
  readonly type: PropertyType;
  /** The values that the type was inferred from; null if it is declared. */
  readonly sampled_values: number | null;
  /** Those of them that have the type. */
  readonly matching_values: number | null;
  readonly created_at: string;
  readonly last_updated_at: string;
}

/** A property definition that cannot be stored or removed. The message explains why. */
class InvalidProperty extends Error {
  override readonly name = 'InvalidProperty';
}

const columns = 'team_id, scope, name, type, sampled_values, matching_values, created_at, last_updated_at';
const foreignKeyViolation = '23503';
const maxNameLength = 400;

/** Whether a property can have a definition. */
export const isPropertyName = (name: string): boolean =>
  name !== '' && name.length <= maxNameLength && !name.includes('\0');

/** Declares the type of a property, in place of a declared or inferred one. @throws InvalidProperty */
export async function defineProperty(
  pool: Pool,
  { team_id, scope, name, type }: Pick<PropertyDefinition, 'team_id' | 'scope' | 'name' | 'type'>,
): Promise<PropertyDefinition> {
  if (!isPropertyName(name))
    throw new InvalidProperty(`A property name must have 1 to ${maxNameLength} characters.`);
  try {
    const { rows } = await pool.query<PropertyDefinition>(
      `insert into exportd.property_definitions (team_id, scope, name, type) values ($1, $2, $3, $4)
       on conflict (team_id, scope, name) do update set type = excluded.type, sampled_values = null,
         matching_values = null, last_updated_at = clock_timestamp()
       returning ${columns}`,
      [team_id, scope, name, type],
    );
    const [definition] = rows;
    if (!definition) throw new Error('The insert of a property definition returned no row.');
    return definition;
  } catch (error) {
    if ((error as { code?: unknown }).code === foreignKeyViolation)
      throw new InvalidProperty(`Project ${team_id} does not exist.`);
    throw error;
  }
}

/** The definitions of one project, or of all. */
export const listProperties = async (pool: Pool, teamId?: number): Promise<PropertyDefinition[]> =>
  (
    await pool.query<PropertyDefinition>(
      `select ${columns} from exportd.property_definitions where $1::integer is null or team_id = $1
       order by team_id, scope, name`,
      [teamId ?? null],
    )
  ).rows;

/** Removes a definition, so that the property is a string again. @throws InvalidProperty */
export async function removeProperty(
  pool: Pool,
  { team_id, scope, name }: Pick<PropertyDefinition, 'team_id' | 'scope' | 'name'>,
): Promise<void> {
  const { rowCount } = await pool.query(
    'delete from exportd.property_definitions where team_id = $1 and scope = $2 and name = $3',
    [team_id, scope, name],
  );
  if (!rowCount)
    throw new InvalidProperty(`Project ${team_id} has no definition of the ${scope} property "${name}".`);
}

/** The definitions of some properties of a project. */
export const findProperties = async (
  pool: Pool,
  teamId: number,
  properties: readonly Property[],
): Promise<PropertyDefinition[]> =>
  (
    await pool.query<PropertyDefinition>(
      `select ${columns} from exportd.property_definitions
       where team_id = $1 and (scope, name) in (select * from unnest($2::text[], $3::text[]))`,
      [teamId, properties.map(({ scope }) => scope), properties.map(({ name }) => name)],
    )
  ).rows;

/** Stores inferred types, unless the properties have a type by now, which then stays. */
export async function storeInferredTypes(
  pool: Pool,
  teamId: number,
  inferred: readonly InferredType[],
): Promise<void> {
  await pool.query(
    `insert into exportd.property_definitions (team_id, scope, name, type, sampled_values, matching_values)
     select $1, inferred.* from json_to_recordset($2)
       as inferred (scope text, name text, type text, sampled_values integer, matching_values integer)
     on conflict do nothing`,
    [teamId, JSON.stringify(inferred)],
  );
}
