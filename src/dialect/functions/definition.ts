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
export type Parameter = ValueType | `${ValueType}?` | `${ValueType}...`;

export type FunctionKind = 'scalar' | 'aggregate' | 'window' | 'higher_order';

/** One function of the dialect. */
export interface FunctionDefinition {
  /** As analysts write it. Names are told apart by case unless `anyCase`. */
  readonly name: string;
  readonly anyCase: boolean;
  readonly kind: FunctionKind;
  /** What stands in the first of two pairs of brackets: `quantile(0.9)(x)`. */
  readonly settings: readonly Parameter[];
  readonly parameters: readonly Parameter[];
  readonly gives: ValueType;
  /** One line for people. */
  readonly description: string;
  /**
   * The PostgreSQL that a call becomes, where it is a text with its arguments in their places (`$1`, `$2`), or null
   * where it takes more than that: `emit/` has those, by their names.
   */
  readonly compile: string | null;
  /** Why it is known and cannot be run, with what to write instead; null for all others. */
  readonly refused: string | null;
}

/** How many arguments a function takes. */
export interface Arity {
  readonly least: number;
  /** Infinity with a last parameter that repeats. */
  readonly most: number;
}

/** A repeated parameter stands for none or more. */
export function arityOf(parameters: readonly Parameter[]): Arity {
  const repeats = parameters.some((parameter) => parameter.endsWith('...'));
  const least = parameters.filter(
    (parameter) => !parameter.endsWith('?') && !parameter.endsWith('...'),
  ).length;
  return { least, most: repeats ? Infinity : parameters.length };
}

type Row = (
  name: string,
  parameters: readonly Parameter[],
  gives: ValueType,
  description: string,
  compile?: string,
) => FunctionDefinition;

const rowOf =
  (kind: FunctionKind, anyCase: boolean): Row =>
  (name, parameters, gives, description, compile) => ({
    name,
    anyCase,
    kind,
    settings: [],
    parameters,
    gives,
    description,
    compile: compile ?? null,
    refused: null,
  });

export const scalar = rowOf('scalar', false);
/** A function of standard SQL, whose name may be written in any case. */
export const standard = rowOf('scalar', true);
export const aggregate = rowOf('aggregate', false);
export const standardAggregate = rowOf('aggregate', true);
export const windowFunction = rowOf('window', true);
export const higherOrder = rowOf('higher_order', false);

/** A function with settings in brackets of their own. */
export const withSettings = (
  definition: FunctionDefinition,
  ...settings: readonly Parameter[]
): FunctionDefinition => ({
  ...definition,
  settings,
});

/** A function that analysts know and that is not to be had here. */
export const refused = (definition: FunctionDefinition, instead: string): FunctionDefinition => ({
  ...definition,
  refused: instead,
});
