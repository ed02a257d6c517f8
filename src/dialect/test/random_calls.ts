import { functionDefinitions } from '../functions/registry.ts';
import type { FunctionDefinition, ArgumentType } from '../functions/function_definition.ts';

/** Draws an integer from 0 to `bound` - 1. */
export type Draw = (bound: number) => number;

/** The type of an expression, as far as generation distinguishes it. */
type ValueKind =
  | 'string'
  | 'integer'
  | 'float'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'interval'
  | 'uuid'
  | 'json'
  | 'array(integer)'
  | 'array(float)'
  | 'array(string)'
  | 'array(array(integer))'
  | 'tuple'
  | 'map';

/** Columns of the table `edge_values` and literals of each kind, both ordinary and extreme. */
const leaves: Readonly<Record<ValueKind, readonly string[]>> = {
  string: [
    's',
    's',
    's',
    "'a'",
    "''",
    "'%Y-%m-%d'",
    "'day'",
    "'UTC'",
    "'Int64'",
    "'['",
    '\'{"a": [1, 2]}\'',
    "'a'",
    'NULL',
  ],
  integer: ['i', 'i', 'i', '0', '1', '-1', '3', '64', '9223372036854775807', 'NULL'],
  float: ['f', 'f', 'f', 'n', 'n', '0.5', '-1.5', '1e300', '0.0', 'toFloat(i)'],
  boolean: ['b', 'b', 'true', 'i > 0', 's = s', 'f < 1', 'NULL'],
  date: ['d', 'd', 'toDate(t)', "toDate('2026-02-28')"],
  datetime: ['t', 't', 'now()', "toDateTime('2026-11-01 01:30:00')", 'toDateTime(s)'],
  interval: ['INTERVAL 1 DAY', 'toIntervalHour(i)', 'toIntervalMonth(f)', 'INTERVAL 1 MONTH'],
  uuid: ['u', 'toUUID(s)'],
  json: ['j', 'j', 's'],
  'array(integer)': ['[1, 2, 3]', '[i, i]', '[]', 'range(3)', '[i, 0, NULL]'],
  'array(float)': ['[f, 1.5]', '[n, f]', '[1.5]', '[f]'],
  'array(string)': ["['a', 'b']", '[s, s]', "splitByChar(',', s)", '[]'],
  'array(array(integer))': ['[[1, 2], [i]]', '[[], [3]]'],
  tuple: ['(1, 2)', '(i, s)', '(f, f)'],
  map: ["map('a', 1)", 'map(s, i)', "map('b', f)"],
};

const kindsOfType: Readonly<Record<string, readonly ValueKind[]>> = {
  string: ['string'],
  number: ['integer', 'float'],
  integer: ['integer'],
  float: ['float', 'integer'],
  decimal: ['float', 'integer'],
  boolean: ['boolean'],
  date: ['date'],
  datetime: ['datetime'],
  date_or_datetime: ['date', 'datetime'],
  interval: ['interval'],
  uuid: ['uuid'],
  json: ['json'],
  tuple: ['tuple'],
  map: ['map'],
  'array(any)': ['array(integer)', 'array(string)', 'array(float)'],
  'array(T)': ['array(integer)', 'array(string)', 'array(float)'],
  'array(integer)': ['array(integer)'],
  'array(number)': ['array(integer)', 'array(float)'],
  'array(float)': ['array(float)'],
  'array(string)': ['array(string)'],
  'array(array(T))': ['array(array(integer))'],
};

const allKinds = Object.keys(leaves) as readonly ValueKind[];
/** The kinds most often used for `any` and type variables. */
const commonKinds: readonly ValueKind[] = ['string', 'integer', 'float', 'boolean', 'date', 'datetime'];

const baseType = (argumentType: ArgumentType): string => argumentType.replace(/\?$|\.\.\.$/, '');

/**
 * Generates random calls of all functions with columns and literals that are often extreme. Not all of them compile.
 */
export class RandomCalls {
  readonly #draw: Draw;

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  /** A query over the table `edge_values`. */
  query(): string {
    const choice = this.#draw(10);
    if (choice < 6) return `SELECT ${this.#call(this.#one(scalars), 2)} AS x FROM edge_values LIMIT 1000`;
    if (choice < 8) {
      const call = this.#call(this.#one(aggregates), 1);
      const suffix = this.#one(['', '', 'If', 'OrNull', 'OrDefault', 'Distinct', 'Array', 'OrNullIf']);
      const suffixed = call.replace(
        /^(\w+)(.*)\)$/s,
        `$1${suffix}$2${suffix.endsWith('If') ? ', i > 0' : ''})`,
      );
      return `SELECT ${suffixed} AS x FROM edge_values${this.#draw(2) === 0 ? ' GROUP BY b' : ''} LIMIT 1000`;
    }
    if (choice === 8) {
      const call = this.#call(this.#one([...windows, ...aggregates]), 1);
      return `SELECT ${this.#wrapped(`${call} OVER (${this.#window()})`)} AS x FROM edge_values LIMIT 1000`;
    }
    return `SELECT id FROM edge_values WHERE ${this.expression('boolean', 3)} ORDER BY ${this.#any(2)} LIMIT 1000`;
  }

  /** An expression of a kind, according to the function table. */
  expression(kind: ValueKind, depth: number): string {
    const choice = this.#draw(10);
    if (depth <= 0 || choice < 3) return this.#one(leaves[kind]);
    if (choice < 5) return this.#operation(kind, depth - 1);
    const fitting = scalars.filter(({ returns: returns }) => kindsOfType[returns]?.includes(kind) === true);
    return fitting.length === 0 ? this.#one(leaves[kind]) : this.#call(this.#one(fitting), depth - 1);
  }

  #operation(kind: ValueKind, depth: number): string {
    const inner = (other: ValueKind): string => `(${this.expression(other, depth)})`;
    switch (kind) {
      case 'integer':
        return `${inner('integer')} ${this.#one(['+', '-', '*', '%'])} ${inner('integer')}`;
      case 'float':
        return `${inner('float')} ${this.#one(['+', '-', '*', '/', '%'])} ${inner('float')}`;
      case 'string':
        return this.#one([
          `${inner('string')} || ${inner('string')}`,
          `CAST(${this.#any(depth)} AS String)`,
          `j.${this.#one(['a', 'b', '`1`'])}`,
        ]);
      case 'datetime':
        return `${inner('datetime')} ${this.#one(['+', '-'])} ${this.#one([inner('interval'), inner('integer')])}`;
      case 'date':
        return `${inner('date')} ${this.#one(['+', '-'])} ${this.#one([inner('interval'), inner('integer')])}`;
      case 'interval':
        return `${inner('interval')} ${this.#one(['+', '-'])} ${inner('interval')}`;
      case 'boolean': {
        const of = this.#one(commonKinds);
        return this.#one([
          `${inner(of)} ${this.#one(['=', '!=', '<', '<=', '>', '>='])} ${inner(of)}`,
          `${inner('string')} ${this.#one(['LIKE', 'NOT LIKE', 'ILIKE', '=~', '!~', '=~*'])} ${inner('string')}`,
          `${inner(of)} ${this.#one(['IN', 'NOT IN'])} (${inner(of)}, ${inner(of)})`,
          `${inner('boolean')} ${this.#one(['AND', 'OR'])} NOT ${inner('boolean')}`,
          `${inner(of)} IS NOT NULL`,
          `${inner(of)} BETWEEN ${inner(of)} AND ${inner(of)}`,
        ]);
      }
      default:
        return this.#one([
          `if(${inner('boolean')}, ${inner(kind)}, ${inner(kind)})`,
          `CASE WHEN ${inner('boolean')} THEN ${inner(kind)} END`,
          `${inner(kind)} ?? ${inner(kind)}`,
        ]);
    }
  }

  #call(definition: FunctionDefinition, depth: number): string {
    const parameterTypes = definition.parameterTypes.length === 0 ? '' : `(${this.#settings(definition)})`;
    const { argumentTypes: argumentTypes } = definition;
    const given = argumentTypes.flatMap((argumentType) =>
      argumentType.endsWith('...')
        ? Array.from({ length: this.#draw(3) }, () => argumentType)
        : argumentType.endsWith('?') && this.#draw(2) === 0
          ? []
          : [argumentType],
    );
    const shared = this.#one(commonKinds);
    const lambdas = given.some((argumentType) => baseType(argumentType) === 'lambda');
    const values = given.map((argumentType) => this.#argument(baseType(argumentType), shared, depth));
    const lambda = this.#lambda(Math.max(1, values.length - 1), depth);
    const written = lambdas ? [lambda, ...values.slice(1)] : values;
    return `${definition.name}${parameterTypes}(${written.join(', ')})`;
  }

  #argument(argumentType: string, shared: ValueKind, depth: number): string {
    if (argumentType === 'any') return this.#any(depth);
    if (argumentType === 'T' || argumentType === 'U') return this.expression(shared, depth);
    const shaped = argumentType === 'array(T)' ? (`array(${shared})` as ValueKind) : undefined;
    if (shaped !== undefined && shaped in leaves) return this.expression(shaped, depth);
    return this.expression(this.#one(kindsOfType[argumentType] ?? commonKinds), depth);
  }

  #lambda(argumentTypes: number, depth: number): string {
    const names = ['x', 'y', 'z'].slice(0, argumentTypes);
    const body = this.#one([
      'x',
      'x > 1',
      'x * x',
      'toFloat(x) / 0',
      'toString(x)',
      `x = ${this.#one(leaves.integer)}`,
      `concat(toString(x), ${this.expression('string', depth - 1)})`,
      `x + ${this.expression('integer', depth - 1)}`,
    ]);
    return names.length === 1 ? `x -> ${body}` : `(${names.join(', ')}) -> ${body}`;
  }

  #settings({ parameterTypes: parameterTypes }: FunctionDefinition): string {
    return parameterTypes
      .slice(0, 1 + this.#draw(parameterTypes.length))
      .map((parameterType) =>
        baseType(parameterType).startsWith('float')
          ? this.#one(['0.5', '0', '1', '0.99'])
          : this.#one(['1', '3', '100']),
      )
      .join(', ');
  }

  #window(): string {
    const partition = this.#one(['', 'PARTITION BY b ', 'PARTITION BY s ']);
    const frame = this.#one([
      '',
      ' ROWS BETWEEN 1 PRECEDING AND CURRENT ROW',
      ' ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
      ' RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING',
      ' GROUPS CURRENT ROW',
    ]);
    return `${partition}ORDER BY ${this.#one(['id', 'i', 'f', 's', 't', 'd'])}${frame}`;
  }

  /** Sometimes nests a window function in another expression. */
  #wrapped(call: string): string {
    return this.#one([
      call,
      call,
      `toString(${call})`,
      `coalesce(${call}, ${call})`,
      `(${call}, 1)`,
      `[${call}]`,
      `has([1, 2], ${call})`,
      `length(${call})`,
      `arrayMap(x -> x, ${call})`,
      `if(${call} = ${call}, 1, 2)`,
    ]);
  }

  #any(depth: number): string {
    return this.expression(this.#draw(4) === 0 ? this.#one(allKinds) : this.#one(commonKinds), depth);
  }

  #one<Item>(choices: readonly Item[]): Item {
    const chosen = choices[this.#draw(choices.length)];
    if (chosen === undefined) throw new Error('No choices.');
    return chosen;
  }
}

const ofKind = (...kinds: readonly FunctionDefinition['kind'][]): readonly FunctionDefinition[] =>
  functionDefinitions.filter(
    ({ kind, unsupported: unsupported }) => kinds.includes(kind) && unsupported === null,
  );

const scalars = ofKind('scalar', 'higher_order');
const aggregates = ofKind('aggregate');
const windows = ofKind('window');
