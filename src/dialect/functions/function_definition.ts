import type { Call, Expression, Node } from '../ast.ts';
import type { Compiler } from '../compile/compiler.ts';
import type { DialectError } from '../dialect_error.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { commaList, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/** A function call whose arguments are checked and converted to the parameter types. */
export interface CallSite {
  readonly compiler: Compiler;
  readonly scope: Scope;
  readonly statement: Statement;
  readonly node: Call;
  /** The name as written. */
  readonly name: string;
  /** The argument nodes. */
  readonly nodes: readonly Expression[];
  readonly values: readonly Value[];
  /** Arguments in the first of two pairs of parentheses. */
  readonly parameters: readonly Value[];
  /** The declared return type, nullable if any argument is. Its kind is `null` if only the emitter knows the type. */
  readonly returnType: Type;
}

/** A call of an aggregate. */
export interface AggregateCallSite extends CallSite {
  readonly distinct: boolean;
  /** Whether the aggregate may run over no rows. */
  readonly mayBeEmpty: boolean;
  /** The ORDER BY clause of the aggregate, or empty. */
  readonly orderBy: Sql;
  readonly isWindow: boolean;
  /** Applies the call's FILTER and OVER, and additional conditions, to a PostgreSQL aggregate. */
  readonly over: (call: Sql, ...conditions: readonly Sql[]) => Sql;
}

/** The SQL of a call, with its type if it differs from the declared one. */
export type Emitted = Sql | { readonly sql: Sql; readonly type: Type };
export type Emitter = (site: CallSite) => Emitted;
export type AggregateEmitter = (site: AggregateCallSite) => Emitted;

/** The argument at an index. @throws Error if the definition does not have it */
export function argument(site: CallSite, index: number): Value {
  const value = site.values[index];
  if (value === undefined) throw new Error(`${site.name} has no argument ${index}.`);
  return value;
}

/** The SQL of the argument at an index. */
export const argumentSql = (site: CallSite, index: number): Sql => argument(site, index).sql;

export const optionalArgumentSql = (site: CallSite, index: number): Sql | undefined =>
  site.values[index]?.sql;

/** All arguments from an index on, comma-separated. */
export const argumentsSql = (site: CallSite, from = 0): Sql =>
  commaList(site.values.slice(from).map(({ sql }) => sql));

export const argumentNode = (site: CallSite, index: number): Node => site.nodes[index] ?? site.node;

/** Whether any argument may be null. */
export const isNullable = (site: CallSite): boolean => site.values.some(({ type }) => type.nullable);

/** The error for an argument. @param suggestion what to write instead */
export const argumentError = (
  site: CallSite,
  index: number,
  message: string,
  suggestion: string | null = null,
): DialectError => site.statement.error(message, argumentNode(site, index), suggestion);

/** The parallel items of one or more arrays, and the result of the lambda. */
export interface LambdaItems {
  /** FROM item with one row per item, whose index is `at`. */
  readonly rows: Sql;
  readonly at: Sql;
  /** The item as a value and as jsonb. */
  readonly item: Value;
  readonly json: Sql;
  /** The result of the lambda; without a lambda, the item. */
  readonly result: Value;
  readonly arrays: readonly Value[];
  readonly body: Expression;
}

/** Creates the SQL of a function that takes a lambda. */
export type LambdaEmitter = (items: LambdaItems, scope: Scope) => { readonly sql: Sql; readonly type: Type };

const simpleTypes = [
  ...(['any', 'string', 'number', 'integer', 'float', 'decimal', 'boolean', 'date', 'datetime'] as const),
  ...(['date_or_datetime', 'interval', 'uuid', 'json', 'tuple', 'map', 'T', 'U'] as const),
] as const;

/** The types that functions distinguish. `T` and `U` each stand for one type throughout a signature. */
type SimpleType = (typeof simpleTypes)[number];

type ValueType = SimpleType | 'lambda' | `array(${SimpleType})` | 'array(array(T))';

/** The type of an argument: `?` marks an optional one; `...`, on the last, any number of them. */
export type ArgumentType = ValueType | `${ValueType}?` | `${ValueType}...`;

export type FunctionKind = 'scalar' | 'aggregate' | 'window' | 'higher_order';

/** The range of an integer literal, by the index of its argument from 0. */
export interface IntegerRange {
  readonly index: number;
  readonly min: number;
  readonly max?: number;
  /** Applies only to calls with this number of arguments. */
  readonly argumentCount?: number;
}

/** A function of the dialect. */
export interface FunctionDefinition {
  /** As written in queries. Case-sensitive unless `isCaseInsensitive`. */
  readonly name: string;
  readonly isCaseInsensitive: boolean;
  readonly kind: FunctionKind;
  /** Types of the arguments in the first of two pairs of parentheses: `quantile(0.9)(x)`. */
  readonly parameterTypes: readonly ArgumentType[];
  readonly parameterRanges: readonly IntegerRange[];
  readonly argumentTypes: readonly ArgumentType[];
  /** Values read from rows are not checked: they yield null or are clamped, so that no row fails a query. */
  readonly argumentRanges: readonly IntegerRange[];
  readonly returns: ValueType;
  /** The values of a group that an aggregate keeps in memory, whose size is then limited; null if it keeps one. */
  readonly gathers: 'all' | 'distinct' | null;
  /** Whether an aggregate sorts the values of a group, on disk if they are many. */
  readonly sorts: boolean;
  /** Whether an aggregate depends on the order of rows, which a sorted subquery in FROM then decides. */
  readonly isOrderSensitive: boolean;
  /** Whether an aggregate supports DISTINCT: never, without OVER, or always. */
  readonly distinct: 'unsupported' | 'without_over' | 'supported';
  /** One line of documentation. */
  readonly description: string;
  /** SQL with the arguments as `$1`, `$2`; null if something else creates it. */
  readonly template: string | null;
  /** Creates the SQL of a scalar function; null for all others. */
  readonly emit: Emitter | null;
  /** Creates the SQL of an aggregate or window function; null for all others. */
  readonly emitAggregate: AggregateEmitter | null;
  /** Creates the SQL of a function that takes a lambda; null for all others. */
  readonly emitLambda: LambdaEmitter | null;
  /** For unsupported functions, what to write instead; null for all others. */
  readonly unsupported: string | null;
}

/** The number of arguments that a function takes. */
interface Arity {
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

/** Marks functions that the compiler reads as syntax (`../compile/calls/calls.ts`), and arrayFold. */
export const byCompiler = Symbol('compiled by the compiler');

/** What few functions need. For the fields of aggregates, see `FunctionDefinition`. */
interface DefinitionOptions extends Partial<
  Pick<FunctionDefinition, 'parameterRanges' | 'gathers' | 'sorts' | 'isOrderSensitive' | 'distinct'>
> {
  /** See `parameterTypes`, for parametric functions. */
  readonly parameters?: readonly ArgumentType[];
  /** Ranges of arguments that are integer literals. */
  readonly ranges?: readonly IntegerRange[];
}

type EmitterFields = Pick<FunctionDefinition, 'emit' | 'emitAggregate' | 'emitLambda'>;

/** Parses a signature such as `position(string, string, integer?): integer`. @throws Error for an unknown type */
function parseSignature(text: string): Pick<FunctionDefinition, 'name' | 'argumentTypes' | 'returns'> {
  const [, name = '', list = '', returns = ''] = /^(\w+)\((.*)\): (.+)$/.exec(text) ?? [];
  const argumentTypes = list === '' ? [] : list.split(', ');
  if (!isValueType(returns) || !argumentTypes.every(isArgumentType))
    throw new Error(`This is not the signature of a function: ${text}.`);
  return { name, argumentTypes, returns };
}

const isArgumentType = (text: string): text is ArgumentType => isValueType(text.replace(/(\?|\.{3})$/, ''));
const isValueType = (text: string): text is ValueType =>
  ['lambda', 'array(array(T))', ...simpleTypes].includes(text.replace(/^array\((\w+)\)$/, '$1'));

/**
 * Makes rows of one kind, whose emitters are stored in one field. `sql` has the arguments as `$1`, `$2`, or is what
 * creates the SQL.
 */
const definitionRow =
  <Emit extends Emitter | AggregateEmitter | LambdaEmitter>(
    kind: FunctionKind,
    isCaseInsensitive: boolean,
    emitterOf: (emit: Emit) => Partial<EmitterFields>,
  ) =>
  (
    signature: `${string}(${string}): ${ValueType}`,
    description: string,
    sql: string | Emit | typeof byCompiler,
    { parameters = [], ranges = [], ...options }: DefinitionOptions = {},
  ): FunctionDefinition => ({
    ...{ ...parseSignature(signature), isCaseInsensitive, kind, description },
    ...{ parameterRanges: [], gathers: null, sorts: false, isOrderSensitive: false, distinct: 'unsupported' },
    ...options,
    parameterTypes: parameters,
    argumentRanges: ranges,
    template: typeof sql === 'string' ? sql : null,
    ...{ emit: null, emitAggregate: null, emitLambda: null, unsupported: null },
    ...(typeof sql === 'function' && emitterOf(sql)),
  });

const ofScalar = (emit: Emitter): Partial<EmitterFields> => ({ emit });
const ofAggregate = (emitAggregate: AggregateEmitter): Partial<EmitterFields> => ({ emitAggregate });

export const scalar = definitionRow('scalar', false, ofScalar);
/** A function of standard SQL, whose name is case-insensitive. */
export const standardScalar = definitionRow('scalar', true, ofScalar);
export const aggregate = definitionRow('aggregate', false, ofAggregate);
export const standardAggregate = definitionRow('aggregate', true, ofAggregate);
export const windowFunction = definitionRow('window', true, ofAggregate);
export const higherOrder = definitionRow('higher_order', false, (emitLambda: LambdaEmitter) => ({
  emitLambda,
}));

/** A ClickHouse function that is not supported. */
export const unsupportedFunction = (
  name: string,
  description: string,
  instead: string,
): FunctionDefinition => ({
  ...scalar(`${name}(any...): any`, description, byCompiler),
  unsupported: instead,
});
