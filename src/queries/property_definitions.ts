import type { Pool } from '../journal/database.ts';

export const propertyScopes = ['event', 'person'] as const;
export type PropertyScope = (typeof propertyScopes)[number];

export const propertyTypes = ['numeric', 'boolean', 'datetime'] as const;
export type PropertyType = (typeof propertyTypes)[number];

/**
 * The type of a property of a project's events or persons. Queries read the property as that type, and unconvertible
 * values as null.
 */
export interface PropertyDefinition {
  readonly team_id: number;
  readonly scope: PropertyScope;
  readonly name: string;
  readonly type: PropertyType;
  readonly created_at: string;
  readonly last_updated_at: string;
}

/** A property definition that cannot be stored or removed. The message explains why. */
class InvalidProperty extends Error {
  override readonly name = 'InvalidProperty';
}

const columns = 'team_id, scope, name, type, created_at, last_updated_at';
const foreignKeyViolation = '23503';
const maxNameLength = 400;

/** Defines a property or changes its type. @throws InvalidProperty */
export async function defineProperty(
  pool: Pool,
  { team_id, scope, name, type }: Pick<PropertyDefinition, 'team_id' | 'scope' | 'name' | 'type'>,
): Promise<PropertyDefinition> {
  if (name === '' || name.length > maxNameLength || name.includes('\0'))
    throw new InvalidProperty(`A property name must have 1 to ${maxNameLength} characters.`);
  try {
    const { rows } = await pool.query<PropertyDefinition>(
      `insert into exportd.property_definitions (team_id, scope, name, type) values ($1, $2, $3, $4)
       on conflict (team_id, scope, name) do update set type = excluded.type, last_updated_at = clock_timestamp()
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
