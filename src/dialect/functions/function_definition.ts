import type { Call, Expression, Node } from '../ast.ts';
import { type Compiler, computeOnce, computeSqlOnce } from '../compile/compiler.ts';
import { intervalOf } from '../compile/expressions/arithmetic.ts';
import { typeOfName } from '../compile/expressions/casts.ts';
import { toStringSql } from '../compile/expressions/coerce.ts';
import { startOfDay, timeZoneNamed } from '../compile/times/local_times.ts';
import type { DialectError, TimeUnit } from '../query_text.ts';
import { parseExpression } from '../parser/queries.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { bind, commaList, joinSql, rawSql, type Sql, sql } from '../sql.ts';
import { isNumber, nameOfType, scalarType, timeIn, TimeZone, type Type, zoneOf } from '../types.ts';

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
  /** The arguments, converted to the declared types. */
  readonly values: readonly Value[];
  /** The arguments before that. */
  readonly given: readonly Value[];
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
  /** The number of a row of a sorted subquery; null if rows have no order. */
  readonly ordinal: Sql | null;
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
    ...parseSignature(signature),
    isCaseInsensitive,
    kind,
    description,
    parameterRanges: [],
    gathers: null,
    sorts: false,
    isOrderSensitive: false,
    distinct: 'unsupported',
    ...options,
    parameterTypes: parameters,
    argumentRanges: ranges,
    template: typeof sql === 'string' ? sql : null,
    emit: null,
    emitAggregate: null,
    emitLambda: null,
    unsupported: null,
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

/** Maximum size of an array or string that a call creates. Larger ones would exhaust the database's memory. */
export const maxItems = 100_000;
export const maxCharacters = 1_000_000;

/** A number as a 32-bit integer between two bounds. Null stays null, which LEAST and GREATEST would ignore. */
export const clamped = (number: Sql, min: Sql, max: Sql): Sql =>
  sql`(case when ${number} is not null then least(greatest(${number}, ${min}), ${max}) end)::int4`;

/** Rejects a call whose literals exceed the maximum size. Sizes read from rows are clamped. */
export const withMaxSize =
  (max: number, things: string, countOf: (site: CallSite) => number, emitter: Emitter): Emitter =>
  (site) => {
    if (countOf(site) > max)
      throw site.statement.error(
        `'${site.name}' can create at most ${max.toLocaleString('en')} ${things}.`,
        site.node,
      );
    return emitter(site);
  };

/** The value of a number literal, or `otherwise`. */
export function constantNumber(site: CallSite, index: number, otherwise = 0): number {
  const constant = site.values[index]?.constant;
  return typeof constant === 'bigint' || typeof constant === 'number' ? Number(constant) : otherwise;
}

/** The number of items of a range with literal bounds; 0 for other bounds, infinite for a step of 0. */
export function itemsOfRange(site: CallSite): number {
  const { length } = site.values;
  const from = length === 1 ? 0 : constantNumber(site, 0, NaN);
  const to = constantNumber(site, length === 1 ? 0 : 1, NaN);
  const step = length > 2 ? constantNumber(site, 2, NaN) : 1;
  const items = Math.ceil((to - from) / step);
  return Number.isNaN(items) ? 0 : items;
}

/** Decodes UTF-8; invalid bytes yield null. They are checked first, because PostgreSQL would fail. */
export const decodeUtf8 = (bytes: Sql): Sql => {
  const body = (hex: Sql): Sql =>
    sql`(case when ${hex} ~ ${utf8} then convert_from(decode(${hex}, 'hex'), 'UTF8') end)`;
  return computeSqlOnce([sql`encode(${bytes}, 'hex')`], (hex = sql``) => body(hex));
};

const utf8 = sql`'^((0[1-9a-f]|[1-7][0-9a-f])|c[2-9a-f][89ab][0-9a-f]|d[0-9a-f][89ab][0-9a-f]|e0[ab][0-9a-f][89ab][0-9a-f]|ed[89][0-9a-f][89ab][0-9a-f]|e[1-9a-cef]([89ab][0-9a-f]){2}|f0[9ab][0-9a-f]([89ab][0-9a-f]){2}|f[1-3]([89ab][0-9a-f]){3}|f48[0-9a-f]([89ab][0-9a-f]){2})*$'`;

/**
 * A value as a string: numbers as ClickHouse formats them, with exponents from 1e21 and below 1e-6, and datetimes as
 * local times of a zone.
 */
export function formattedText(
  site: CallSite,
  value: Value,
  zone: Sql = site.statement.zoneOf(value.type),
): Sql {
  if (value.type.kind === 'float')
    return computeOnce(
      [value],
      (
        x = sql``,
      ) => sql`(case when ${x} in ('NaN', 'Infinity', '-Infinity') then replace(replace(lower((${x})::text), 'inity', ''), 'nan', 'nan')
      when ${x} = 0 then '0' when abs(${x}) < 1e21 and abs(${x}) >= 1e-6 then trim_scale((${x})::numeric)::text
      else regexp_replace(regexp_replace((${x})::text, 'e[+]', 'e'), 'e-0', 'e-') end)`,
    );
  if (value.type.kind === 'array' || value.type.kind === 'tuple' || value.type.kind === 'map')
    return formattedLiteral(value.sql, value.type, 0);
  return toStringSql(value, site.statement, zone);
}

/** Arrays, tuples and maps as literals of a query: `['a',1]`. */
function formattedLiteral(json: Sql, type: Type, depth: number): Sql {
  const quoted = (text: Sql): Sql =>
    sql`('''' || replace(replace(${text}, '\\', '\\\\'), '''', '\\''') || '''')`;
  const textOf = (item: Sql, inner: Type): Sql => {
    if (inner.kind === 'array' || inner.kind === 'tuple' || inner.kind === 'map')
      return formattedLiteral(item, inner, depth + 1);
    const text = sql`(${item} #>> '{}')`;
    const formatted =
      isNumber(inner) || inner.kind === 'boolean' || inner.kind === 'null' ? text : quoted(text);
    return sql`coalesce(${formatted}, 'NULL')`;
  };
  const name = sql`shown`;
  if (type.kind === 'array')
    return sql`(select '[' || coalesce(string_agg(${textOf(sql`${name}.value`, type.item)}, ',' order by ${name}.ordinality), '') || ']'
      from jsonb_array_elements(${json}) with ordinality as ${name})`;
  if (type.kind === 'map')
    return sql`(select '{' || coalesce(string_agg(${quoted(sql`${name}.key`)} || ':' || ${textOf(sql`${name}.value`, type.value)}, ','), '') || '}'
      from jsonb_each(${json}) as ${name})`;
  if (type.kind !== 'tuple') return sql`(${json})::text`;
  const items = type.items.map((item, index) => textOf(sql`(${json} -> ${sqlIndex(index)})`, item));
  return items.length === 0 ? sql`'()'::text` : sql`('(' || ${joinSql(items, " || ',' || ")} || ')')`;
}

const sqlIndex = (index: number): Sql => bind(String(index), 'int4');

/** The type that a string literal names, such as 'Array(String)'. @throws DialectError */
export function typeFromLiteral(site: CallSite, index: number): Type {
  const name = site.values[index]?.constant;
  const node = argumentNode(site, index);
  const wrong = (): Error =>
    site.statement.error(`The type must be a string literal such as 'Int64' or 'Array(String)'.`, node);
  if (typeof name !== 'string') throw wrong();
  const cast = parsed(`CAST(NULL AS ${name})`);
  if (cast?.kind !== 'cast' || cast.operand.kind !== 'null') throw wrong();
  // Spans of this text are not positions in the query.
  return typeOfName({ ...cast.type, start: node.start, end: node.end }, site.statement);
}

function parsed(text: string): ReturnType<typeof parseExpression> | null {
  try {
    return parseExpression(text);
  } catch {
    return null;
  }
}

/** The names of each unit in strings. */
const unitNames: Readonly<Record<TimeUnit, readonly string[]>> = {
  microsecond: ['microsecond', 'microseconds', 'us', 'u'],
  millisecond: ['millisecond', 'milliseconds', 'ms'],
  second: ['second', 'seconds', 'ss', 's'],
  minute: ['minute', 'minutes', 'mi', 'n'],
  hour: ['hour', 'hours', 'hh', 'h'],
  day: ['day', 'days', 'dd', 'd'],
  week: ['week', 'weeks', 'wk', 'ww'],
  month: ['month', 'months', 'mm', 'm'],
  quarter: ['quarter', 'quarters', 'qq', 'q'],
  year: ['year', 'years', 'yyyy', 'yy'],
};
const units = new Map(
  Object.entries(unitNames).flatMap(([unit, names]) => names.map((name) => [name, unit as TimeUnit])),
);

/** The unit that a string literal names. @throws DialectError */
export function unitAt(site: CallSite, index: number): TimeUnit {
  const name = argument(site, index).constant;
  const unit = typeof name === 'string' ? units.get(name.toLowerCase()) : undefined;
  if (unit === undefined)
    throw argumentError(
      site,
      index,
      `The unit of '${site.name}' must be second, minute, hour, day, week, month, quarter or year.`,
    );
  return unit;
}

/** Maximum amounts; larger ones would make PostgreSQL fail. */
const maxAmounts: Readonly<Record<TimeUnit, number>> = {
  microsecond: 1e17,
  millisecond: 1e14,
  second: 1e11,
  minute: 2e9,
  hour: 3e7,
  day: 1e6,
  week: 1e5,
  month: 4e4,
  quarter: 1e4,
  year: 4e3,
};

/** An interval of an amount of units; null if out of range. Fractions are truncated. */
export function intervalOfUnits(amount: Value, unit: TimeUnit): Value {
  const { constant } = amount;
  if (typeof constant === 'bigint' && Math.abs(Number(constant)) <= maxAmounts[unit])
    return intervalOf(amount, unit);
  const limit = rawSql(String(maxAmounts[unit]));
  const whole = sql`(case when ${amount.sql} between -${limit} and ${limit} then trunc((${amount.sql})::float8) end)`;
  return intervalOf(derive('trunc', [amount], scalarType('integer', true), whole), unit);
}

/** The amount and unit of an interval literal; computed intervals have no single unit. @throws DialectError */
export function constantInterval(
  site: CallSite,
  index: number,
): { readonly amount: Value; readonly unit: TimeUnit } {
  const node = site.nodes[index];
  const part = node === undefined ? null : intervalParts(node);
  if (node === undefined || part === null)
    throw argumentError(
      site,
      index,
      `The interval of '${site.name}' must be a literal.`,
      'Write INTERVAL 15 MINUTE or toIntervalMinute(15).',
    );
  const amount = site.compiler.value(part.amount, site.scope);
  if (!isNumber(amount.type))
    throw site.statement.error(
      `The amount of an interval must be a number, found ${nameOfType(amount.type)}.`,
      part.amount,
    );
  return { amount, unit: part.unit };
}

function intervalParts(node: Expression): { readonly amount: Expression; readonly unit: TimeUnit } | null {
  if (node.kind === 'interval') return { amount: node.amount, unit: node.unit };
  const [amount] = node.kind === 'call' ? node.arguments : [];
  if (node.kind !== 'call' || amount === undefined || !node.name.text.startsWith('toInterval')) return null;
  const unit = units.get(node.name.text.slice('toInterval'.length).toLowerCase());
  return unit === undefined ? null : { amount, unit };
}

/**
 * The time zone of a call: that of an argument if present, else that of a datetime's type, else the project's.
 * @throws DialectError for an unknown zone
 */
export const zoneAt = (site: CallSite, index: number | null, time = 0): TimeZone =>
  new TimeZone(zoneNameAt(site, index, time) ?? site.statement.project.timezone);

/** The type of a datetime in the zone of `zoneAt`. */
export const datetimeTypeAt = (site: CallSite, index: number | null, nullable: boolean, time = 0): Type =>
  timeIn(zoneNameAt(site, index, time), nullable);

function zoneNameAt(site: CallSite, index: number | null, time: number): string | undefined {
  const named = index === null ? undefined : site.values[index];
  if (index !== null && named !== undefined) return zoneNamed(site, named.constant, index);
  const value = site.values[time];
  return value === undefined ? undefined : zoneOf(value.type);
}

function zoneNamed(site: CallSite, name: unknown, index: number): string {
  if (typeof name !== 'string')
    throw argumentError(site, index, "The time zone must be a string literal such as 'Europe/Berlin'.");
  return timeZoneNamed(name, argumentNode(site, index), site.statement);
}

/** A date or datetime as local time of a zone. */
export function localTime(site: CallSite, index: number, zone: Sql): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date'
    ? sql`(${fragment})::timestamp`
    : sql`((${fragment})::timestamptz at time zone ${zone})`;
}

/** A date or datetime as an instant. A date is the start of its day in a zone. */
export function instantAt(site: CallSite, index: number, zone: TimeZone): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date' ? startOfDay(fragment, zone) : fragment;
}
