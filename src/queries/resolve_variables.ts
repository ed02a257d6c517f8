import type { JsonValue } from '../domain/json_value.ts';
import { QueryError } from './query_errors.ts';
import type { UsedVariable } from './query_kind.ts';
import type { Variable } from './variables.ts';

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
