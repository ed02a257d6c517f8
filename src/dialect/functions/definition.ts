/** The types that functions tell apart. `T` and `U` stand for one type each, the same wherever a function names it. */
export type SimpleType =
  | 'any'
  | 'string'
  | 'number'
  | 'integer'
  | 'float'
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'date_or_datetime'
  | 'interval'
  | 'uuid'
  | 'json'
  | 'tuple'
  | 'map'
  | 'T'
  | 'U';

export type ValueType = SimpleType | 'lambda' | `array(${SimpleType})` | 'array(array(T))';

/** What a function takes at one place: `?` marks one that may be missing, `...` any number of them, the last. */
export type ArgumentType = ValueType | `${ValueType}?` | `${ValueType}...`;

export type FunctionKind = 'scalar' | 'aggregate' | 'window' | 'higher_order';

/** One function of the dialect. */
export interface FunctionDefinition {
  /** As analysts write it. Names are told apart by case unless `isCaseInsensitive`. */
  readonly name: string;
  readonly isCaseInsensitive: boolean;
  readonly kind: FunctionKind;
  /** What stands in the first of two pairs of brackets: `quantile(0.9)(x)`. */
  readonly parameterTypes: readonly ArgumentType[];
  readonly argumentTypes: readonly ArgumentType[];
  readonly returns: ValueType;
  /** One line for people. */
  readonly description: string;
  /**
   * The PostgreSQL that a call becomes, where it is a text with its arguments in their places (`$1`, `$2`), or null
   * where it takes more than that: `emit/` has those, by their names.
   */
  readonly template: string | null;
  /** Why it is known and cannot be run, with what to write instead; null for all others. */
  readonly unsupported: string | null;
}

/** How many arguments a function takes. */
export interface Arity {
  readonly min: number;
  /** Infinity with a last parameter that repeats. */
  readonly max: number;
}

/** A repeated parameter stands for none or more. */
export function arityOf(argumentTypes: readonly ArgumentType[]): Arity {
  const repeats = argumentTypes.some((parameter) => parameter.endsWith('...'));
  const min = argumentTypes.filter(
    (parameter) => !parameter.endsWith('?') && !parameter.endsWith('...'),
  ).length;
  return { min, max: repeats ? Infinity : argumentTypes.length };
}

type DefinitionRow = (
  name: string,
  argumentTypes: readonly ArgumentType[],
  returns: ValueType,
  description: string,
  template?: string,
) => FunctionDefinition;

const definitionRow =
  (kind: FunctionKind, isCaseInsensitive: boolean): DefinitionRow =>
  (name, argumentTypes, returns, description, template) => ({
    name,
    isCaseInsensitive,
    kind,
    parameterTypes: [],
    argumentTypes,
    returns,
    description,
    template: template ?? null,
    unsupported: null,
  });

export const scalar = definitionRow('scalar', false);
/** A function of standard SQL, whose name may be written in any case. */
export const standardScalar = definitionRow('scalar', true);
export const aggregate = definitionRow('aggregate', false);
export const standardAggregate = definitionRow('aggregate', true);
export const windowFunction = definitionRow('window', true);
export const higherOrder = definitionRow('higher_order', false);

/** A function with settings in brackets of their own. */
export const withParameters = (
  definition: FunctionDefinition,
  ...parameterTypes: readonly ArgumentType[]
): FunctionDefinition => ({
  ...definition,
  parameterTypes,
});

/** A function that analysts know and that is not to be had here. */
export const unsupported = (definition: FunctionDefinition, instead: string): FunctionDefinition => ({
  ...definition,
  unsupported: instead,
});
