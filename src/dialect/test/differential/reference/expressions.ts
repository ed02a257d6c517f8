import {
  type Case,
  type Expression,
  type Field,
  findNodes,
  type Node,
  type TimeLiteral,
} from '../../../ast.ts';
import { aggregateOf, isAggregate } from './aggregates.ts';
import { callOf, elementOf } from './calls.ts';
import { holds, unify } from './conversions.ts';
import { arithmetic, comparison, isIn, isInArray, logical, match, strict } from './operators.ts';
import { rowsOfQuery } from './queries.ts';
import { columnOf, expressionIdentity, lambdaKey, type Meaning, type ReferenceScope } from './scope.ts';
import { parseDatetime } from './times.ts';
import { arrayOf, isNumber, type ReferenceType, typeOf, withNull } from './types.ts';
import { type Duration, isSame, unsupported, type Value } from './values.ts';
import { windowOf } from './windows.ts';

const constant = (type: ReferenceType, value: Value, more: Partial<Meaning> = {}): Meaning => ({
  type,
  of: () => value,
  ...more,
});

const literal = (type: ReferenceType, value: Value): Meaning => constant(type, value, { constant: value });

/** Arithmetic with literals is a literal too. */
function folded(meaning: Meaning, operands: readonly Meaning[]): Meaning {
  if (operands.some((operand) => operand.constant === undefined) || !isNumber(meaning.type.kind))
    return meaning;
  return { ...meaning, constant: meaning.of({ cells: new Map() }) };
}

/** The meaning of an expression: its type, and its value for each row. */
export function meaningOf(expression: Expression, outer: ReferenceScope): Meaning {
  const scope = outer.anyOrder === true ? { ...outer, anyOrder: false } : outer;
  const key = scope.keys?.get(expressionIdentity(expression, scope));
  if (key !== undefined) return { type: key.type, of: (row) => row.group?.keys[key.index] ?? null };
  const of = (operand: Expression): Meaning => meaningOf(operand, scope);
  switch (expression.kind) {
    case 'number':
      return /^\d+$/.test(expression.text)
        ? literal(typeOf('integer'), BigInt(expression.text))
        : literal(typeOf('float'), numberOf(expression.text));
    case 'string':
      return { ...literal(typeOf('string'), expression.value), literal: expression.value };
    case 'boolean':
      return literal(typeOf('boolean'), expression.value);
    case 'null':
      return constant(typeOf('null', true), null, { isNull: true });
    case 'alias':
      return of(expression.expression);
    case 'field':
      return fieldOf(expression, scope);
    case 'array': {
      const items = unify(expression.items.map(of), scope);
      const type = { ...(items[0]?.type ?? typeOf('null', true)) };
      const nullable = items.length === 0 || items.some((item) => item.type.nullable);
      return { type: arrayOf(withNull(type, nullable)), of: (row) => items.map((item) => item.of(row)) };
    }
    case 'index':
      if (isZero(expression.index, scope)) return unsupported('The index 0.');
      return elementOf(of(expression.object), of(expression.index));
    case 'unary':
      return folded(unaryOf(expression.operator, of(expression.operand)), [of(expression.operand)]);
    case 'arithmetic': {
      const [left, right] = [of(expression.left), of(expression.right)];
      const meaning = arithmetic(expression.operator, left, right, scope);
      return expression.operator === '%' ? meaning : folded(meaning, [left, right]);
    }
    case 'comparison':
      return comparisonOf(expression, scope);
    case 'logical':
      return logical(
        expression.operator,
        expression.operands.map((operand) => conditionOf(operand, scope)),
      );
    case 'nullish':
      return coalesce([of(expression.left), of(expression.right)], scope);
    case 'is_null': {
      const operand = of(expression.operand);
      return {
        type: typeOf('boolean'),
        of: (row) => (operand.of(row) === null) !== expression.negated,
      };
    }
    case 'between': {
      const [operand, low, high] = [of(expression.operand), of(expression.low), of(expression.high)];
      const inside = logical('and', [
        comparison('>=', operand, low, scope),
        comparison('<=', operand, high, scope),
      ]);
      return expression.negated ? unaryOf('not', inside) : inside;
    }
    case 'conditional':
      return branches([[expression.condition, expression.then]], expression.otherwise, scope);
    case 'case':
      return caseOf(expression, scope);
    case 'interval':
      return intervalOf(of(expression.amount), expression.unit);
    case 'time':
      return timeLiteral(expression, scope);
    case 'call':
      if (expression.over !== null) return windowOf(expression, scope);
      if (isAggregate(expression.name.text)) return aggregateOf(expression, outer);
      return callOf(expression, scope);
    case 'subquery': {
      const { columns, rows } = rowsOfQuery(expression.query, scope.world, scope.ctes);
      const [column, another] = columns;
      if (column === undefined || another !== undefined || rows.length > 1)
        return unsupported('A scalar subquery of several values.');
      return constant(withNull(column.type), rows[0]?.[0] ?? null);
    }
    default:
      return unsupported(expression.kind);
  }
}

/** Whether an index is always 0, which the dialect rejects. */
function isZero(index: Expression, scope: ReferenceScope): boolean {
  const isVariable = (node: Node): node is Node => node.kind === 'field' || node.kind === 'subquery';
  if (findNodes(index, isVariable).length > 0) return false;
  return meaningOf(index, scope).of({ cells: new Map() }) === 0n;
}

const numberOf = (text: string): number => (text === 'inf' ? Infinity : text === 'nan' ? NaN : Number(text));

/** A condition as a boolean, null if its value is. */
export function conditionOf(expression: Expression, scope: ReferenceScope): Meaning {
  const meaning = meaningOf(expression, scope);
  if (meaning.type.kind === 'boolean') return meaning;
  if (meaning.type.kind === 'null') return { ...meaning, type: typeOf('boolean', true) };
  return unsupported(`A condition of type ${meaning.type.kind}.`);
}

function fieldOf(field: Field, scope: ReferenceScope): Meaning {
  const path = field.path.map((name) => name.text);
  const [only, ...rest] = path;
  if (only !== undefined && rest.length === 0) {
    const type = scope.lambdas.get(only);
    if (type !== undefined) return { type, of: (row) => row.cells.get(lambdaKey(only)) ?? null };
    const alias = scope.aliases.get(only);
    if (alias !== undefined) return meaningOf(alias, { ...scope, aliases: without(scope.aliases, only) });
  }
  const column = columnOf(path, scope);
  if (scope.keys !== undefined) return unsupported(`The column ${column.key} is not a key.`);
  return { type: column.type, of: (row) => row.cells.get(column.key) ?? null };
}

const without = <T>(map: ReadonlyMap<string, T>, name: string): ReadonlyMap<string, T> =>
  new Map([...map].filter(([key]) => key !== name));

function unaryOf(operator: 'not' | '-', operand: Meaning): Meaning {
  if (operator === 'not') {
    if (operand.type.kind !== 'boolean') return unsupported(`NOT of ${operand.type.kind}.`);
    return strict(typeOf('boolean'), [operand], (value) => value !== true);
  }
  if (operand.type.kind === 'interval')
    return strict(operand.type, [operand], (value) => {
      const { months, days, microseconds } = value as Duration;
      return { months: -months, days: -days, microseconds: -microseconds };
    });
  return strict(operand.type, [operand], (value) => -(value as number));
}

function comparisonOf(
  { operator, left, right }: Extract<Expression, { kind: 'comparison' }>,
  scope: ReferenceScope,
): Meaning {
  const of = (operand: Expression): Meaning => meaningOf(operand, scope);
  switch (operator) {
    case '=':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return comparison(operator, of(left), of(right), scope);
    case 'like':
    case 'ilike':
    case 'not like':
    case 'not ilike':
      return match(operator, of(left), of(right), scope);
    case 'in':
    case 'not in':
      return inOf(left, right, operator === 'not in', scope);
    default:
      return unsupported(operator);
  }
}

function inOf(left: Expression, right: Expression, isNegated: boolean, scope: ReferenceScope): Meaning {
  const value = meaningOf(left, scope);
  if (right.kind === 'tuple')
    return isIn(
      value,
      right.items.map((item) => meaningOf(item, scope)),
      isNegated,
      scope,
    );
  if (right.kind === 'subquery') {
    const { columns, rows } = rowsOfQuery(right.query, scope.world, scope.ctes);
    const [column, another] = columns;
    if (column === undefined || another !== undefined) return unsupported('IN of several columns.');
    const candidates = rows.map(([item = null]) => constant(column.type, item));
    if (candidates.length === 0) {
      isIn(value, [constant(column.type, null)], false, scope);
      return constant(typeOf('boolean'), isNegated);
    }
    return isIn(value, candidates, isNegated, scope);
  }
  const candidate = meaningOf(right, scope);
  return candidate.type.kind === 'array'
    ? isInArray(value, candidate, isNegated, scope)
    : isIn(value, [candidate], isNegated, scope);
}

/** The first value that is not null. */
export function coalesce(operands: readonly Meaning[], scope: ReferenceScope): Meaning {
  const values = unify(operands, scope);
  const type = values[0]?.type ?? typeOf('null', true);
  return {
    type: withNull(
      type,
      values.every((value) => value.type.nullable),
    ),
    of: (row) => {
      for (const value of values) {
        const found = value.of(row);
        if (found !== null) return found;
      }
      return null;
    },
  };
}

/** The value of the first condition that is true. */
export function branches(
  pairs: readonly (readonly [Expression, Expression])[],
  otherwise: Expression | null,
  scope: ReferenceScope,
): Meaning {
  const conditions = pairs.map(([condition]) => holds(meaningOf(condition, scope)));
  const last = otherwise === null ? constant(typeOf('null', true), null) : meaningOf(otherwise, scope);
  const values = unify([...pairs.map(([, then]) => meaningOf(then, scope)), last], scope);
  const type = values[0]?.type ?? typeOf('null', true);
  return {
    type: withNull(
      type,
      values.some((value) => value.type.nullable),
    ),
    of: (row) => {
      const index = conditions.findIndex((condition) => condition(row));
      return values.at(index)?.of(row) ?? null;
    },
  };
}

function caseOf({ subject, branches: whens, otherwise }: Case, scope: ReferenceScope): Meaning {
  if (subject === null)
    return branches(
      whens.map(({ when, then }) => [when, then]),
      otherwise,
      scope,
    );
  const value = meaningOf(subject, scope);
  const matches = whens.map(({ when }) => comparison('=', value, meaningOf(when, scope), scope));
  const last = otherwise === null ? constant(typeOf('null', true), null) : meaningOf(otherwise, scope);
  const values = unify([...whens.map(({ then }) => meaningOf(then, scope)), last], scope);
  return {
    type: withNull(
      values[0]?.type ?? typeOf('null', true),
      values.some(({ type }) => type.nullable),
    ),
    of: (row) => values.at(matches.findIndex((found) => isSame(found.of(row), true)))?.of(row) ?? null,
  };
}

const unitLengths: Readonly<Record<string, { months?: number; days?: number; seconds?: number }>> = {
  second: { seconds: 1 },
  minute: { seconds: 60 },
  hour: { seconds: 3600 },
  day: { days: 1 },
  week: { days: 7 },
  month: { months: 1 },
  quarter: { months: 3 },
  year: { months: 12 },
};

function timeLiteral({ type, text }: TimeLiteral, scope: ReferenceScope): Meaning {
  const moment = parseDatetime(text, scope.world.timezone);
  if (moment === undefined) return unsupported(`The time ${text}.`);
  return type === 'date' ? constant(typeOf('date'), text) : constant(typeOf('datetime'), moment);
}

/** An interval of a number of units, such as `day`. */
export function intervalOf(meaning: Meaning, unit: string): Meaning {
  const length = unitLengths[unit] ?? unsupported(`INTERVAL ${unit}`);
  if (meaning.type.kind !== 'integer') return unsupported('An interval of fractions.');
  const type: ReferenceType = {
    ...typeOf('interval'),
    unit: length.seconds === undefined ? 'calendar' : 'clock',
  };
  return strict(type, [meaning], (value) => ({
    months: (length.months ?? 0) * Number(value),
    days: (length.days ?? 0) * Number(value),
    microseconds: BigInt(length.seconds ?? 0) * (value as bigint) * 1_000_000n,
  }));
}
