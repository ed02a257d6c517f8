/** The types that functions distinguish. `T` and `U` each stand for one type throughout a signature. */
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

/** The type of an argument: `?` marks an optional one; `...`, on the last, any number of them. */
export type ArgumentType = ValueType | `${ValueType}?` | `${ValueType}...`;

export type FunctionKind = 'scalar' | 'aggregate' | 'window' | 'higher_order';

/** A function of the dialect. */
export interface FunctionDefinition {
  /** As written in queries. Case-sensitive unless `isCaseInsensitive`. */
  readonly name: string;
  readonly isCaseInsensitive: boolean;
  readonly kind: FunctionKind;
  /** Types of the arguments in the first of two pairs of parentheses: `quantile(0.9)(x)`. */
  readonly parameterTypes: readonly ArgumentType[];
  readonly argumentTypes: readonly ArgumentType[];
  readonly returns: ValueType;
  /** One line of documentation. */
  readonly description: string;
  /** SQL with the arguments as `$1`, `$2`, or null if an emitter of the same name in `emit/` creates it. */
  readonly template: string | null;
  /** For unsupported functions, what to write instead; null for all others. */
  readonly unsupported: string | null;
}

/** The number of arguments that a function takes. */
export interface Arity {
  readonly min: number;
  /** Infinity if the last argument repeats. */
  readonly max: number;
}

/** The arity of a signature. A repeated argument may be absent. */
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
/** A function of standard SQL, whose name is case-insensitive. */
export const standardScalar = definitionRow('scalar', true);
export const aggregate = definitionRow('aggregate', false);
export const standardAggregate = definitionRow('aggregate', true);
export const windowFunction = definitionRow('window', true);
export const higherOrder = definitionRow('higher_order', false);

/** A parametric function, with parameters in separate parentheses. */
export const withParameters = (
  definition: FunctionDefinition,
  ...parameterTypes: readonly ArgumentType[]
): FunctionDefinition => ({
  ...definition,
  parameterTypes,
});

/** A ClickHouse function that is not supported. */
export const unsupported = (definition: FunctionDefinition, instead: string): FunctionDefinition => ({
  ...definition,
  unsupported: instead,
});
