import type { JsonValue } from '../domain/json_value.ts';
import type { Pool } from '../journal/database.ts';

/** A variable of a project. Queries read it as `{variables.<code_name>}`. */
export interface Variable {
  readonly id: string;
  readonly team_id: number;
  readonly code_name: string;
  readonly name: string;
  readonly default_value: JsonValue;
  readonly created_at: string;
  readonly last_updated_at: string;
}

/** A variable that cannot be stored. The message explains why. */
export class InvalidVariable extends Error {
  override readonly name = 'InvalidVariable';
}

const columns = 'id, team_id, code_name, name, default_value, created_at, last_updated_at';
const codeName = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
const foreignKeyViolation = '23503';

/** Creates a variable or changes its default value. @throws InvalidVariable */
export async function setVariable(
  pool: Pool,
  definition: {
    readonly team_id: number;
    readonly code_name: string;
    readonly default_value: JsonValue;
    /** By default the current name, or the code name of a new variable. */
    readonly name?: string | undefined;
  },
): Promise<Variable> {
  if (!codeName.test(definition.code_name))
    throw new InvalidVariable(
      `"${definition.code_name}" is not a valid code name: it must start with a letter or _, contain only letters, digits and _, and have at most 100 characters.`,
    );
  try {
    const { rows } = await pool.query<Variable>(
      `insert into exportd.query_variables as stored (team_id, code_name, name, default_value)
       values ($1, $2, coalesce($3, $2), $4)
       on conflict (team_id, code_name) do update set name = coalesce($3, stored.name),
         default_value = excluded.default_value, last_updated_at = clock_timestamp()
       returning ${columns}`,
      [
        definition.team_id,
        definition.code_name,
        definition.name ?? null,
        JSON.stringify(definition.default_value),
      ],
    );
    const [variable] = rows;
    if (!variable) throw new Error('The insert of a variable returned no row.');
    return variable;
  } catch (error) {
    if ((error as { code?: unknown }).code === foreignKeyViolation)
      throw new InvalidVariable(`Project ${definition.team_id} does not exist.`);
    throw error;
  }
}

/** The variables of one project, or of all, by code name. */
export const listVariables = async (pool: Pool, teamId?: number): Promise<Variable[]> =>
  (
    await pool.query<Variable>(
      `select ${columns} from exportd.query_variables where $1::integer is null or team_id = $1
       order by team_id, code_name`,
      [teamId ?? null],
    )
  ).rows;
