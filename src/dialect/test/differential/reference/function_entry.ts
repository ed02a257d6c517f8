import type { ReferenceType } from './types.ts';
import { typeOf } from './types.ts';
import type { Value } from './values.ts';

/**
 * The kinds of arguments. `small` is an integer literal from 0 to 4, `unit` a string literal with a unit of time, `text` any string literal;
 * `T` and `array(T)` share one type.
 */
export type ArgumentKind =
  | 'integer'
  | 'float'
  | 'string'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'uuid'
  | 'small'
  | 'unit'
  | 'text'
  | 'T'
  | 'array(T)'
  | 'array(integer)'
  | 'array(string)';

export interface FunctionContext {
  readonly zone: string;
  readonly weekStart: 'sunday' | 'monday';
}

/** A function of the reference interpreter. */
export interface FunctionEntry {
  readonly name: string;
  readonly takes: readonly ArgumentKind[];
  /** A fixed type, or `T` or `array(T)` as bound by the arguments. */
  readonly returns: ReferenceType | 'T' | 'array(T)';
  /** Whether `apply` sees nulls. */
  readonly seesNulls: boolean;
  readonly apply: (values: readonly never[], context: FunctionContext) => Value;
}

type Apply = (...values: readonly never[]) => Value;

const entry =
  (seesNulls: boolean) =>
  (
    name: string,
    takes: readonly ArgumentKind[],
    returns: ReferenceType | ReferenceType['kind'] | 'T' | 'array(T)',
    apply: Apply | ((context: FunctionContext) => Apply),
    usesContext = false,
  ): FunctionEntry => ({
    name,
    takes,
    returns:
      typeof returns !== 'string' || returns === 'T' || returns === 'array(T)' ? returns : typeOf(returns),
    seesNulls,
    apply: (values, context) =>
      usesContext
        ? (apply as (context: FunctionContext) => Apply)(context)(...values)
        : (apply as Apply)(...values),
  });

/** A function that is null if one of its arguments is. */
export const strictEntry = entry(false);
/** A function that is given nulls. */
export const nullEntry = entry(true);

/** A strict function that depends on the time zone or the first day of the week. */
export const localEntry = (
  name: string,
  takes: readonly ArgumentKind[],
  returns: ReferenceType | ReferenceType['kind'],
  apply: (context: FunctionContext) => Apply,
): FunctionEntry => entry(false)(name, takes, returns, apply, true);
