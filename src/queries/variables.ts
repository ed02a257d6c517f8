import type { JsonValue } from '../domain/event.ts';
import type { Pool } from '../journal/database.ts';
import { QueryError } from './query_errors.ts';
import type { UsedVariable } from './query_kind.ts';

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
class InvalidVariable extends Error {
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

/** A request's override of a variable. */
export interface VariableOverride {
  readonly variableId?: string | null | undefined;
  readonly code_name?: string | null | undefined;
  readonly value?: JsonValue | undefined;
  /** True to set null, whatever `value` is. */
  readonly isNull?: boolean | null | undefined;
}

/**
 * The values of the variables that a query reads, from the request, else from the query, else the project's default.
 * @param overrides by the variable's id or code name
 * @throws QueryError for an override of an unknown variable, and for a variable without a value
 */
export function resolveVariables(
  used: readonly UsedVariable[],
  stored: readonly Variable[],
  overrides: Readonly<Record<string, VariableOverride>>,
): Readonly<Record<string, JsonValue>> {
  const overridden = new Map(
    Object.entries(overrides).map(
      ([key, override]) => [nameOf(key, override, used, stored), override] as const,
    ),
  );
  const values = new Map<string, JsonValue>();
  for (const { code_name, value } of used) {
    const override = overridden.get(code_name);
    const found = override
      ? valueOf(override)
      : (value ?? stored.find((one) => one.code_name === code_name)?.default_value);
    if (found !== undefined) values.set(code_name, found);
    else if (!values.has(code_name))
      throw new QueryError(
        'unknown_variable',
        `This project has no variable "${code_name}", and the query does not set its value.`,
      );
  }
  return Object.fromEntries(values);
}

const valueOf = ({ value, isNull }: VariableOverride): JsonValue => (isNull ? null : (value ?? null));

/** The code name that an override refers to. */
function nameOf(
  key: string,
  override: VariableOverride,
  used: readonly UsedVariable[],
  stored: readonly Variable[],
): string {
  const ids = [override.variableId, key];
  const known = [...stored, ...used].find(
    ({ id, code_name }) => ids.includes(id) || code_name === override.code_name || code_name === key,
  );
  if (!known)
    throw new QueryError(
      'unknown_variable',
      'Neither the project nor the query has a variable with this id or code name.',
      { attr: `variables_override__${key}` },
    );
  return known.code_name;
}
