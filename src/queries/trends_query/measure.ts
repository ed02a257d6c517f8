import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildField } from '@exportd/dialect/ast_builders';
import { parseExpressionAt } from '../expressions.ts';
import { QueryError } from '../query_errors.ts';
import {
  type PropertyMath,
  type TrendsSeries,
  isFirstTimeMath,
  isPerActorMath,
  isPropertyMath,
  statistics,
} from './schema.ts';

/** A column of a measure's rows. */
interface MeasurePart {
  /** Computed from the events of a row: an aggregate if rows are groups of events. */
  readonly of: Expression;
  /** Merges the column over several rows. */
  readonly merged: Expression;
}

/**
 * A measure in two steps: rows for groups of events, and a value over rows. Values beyond the limit can then be merged
 * without reading the events again.
 */
export interface PartialMeasure {
  readonly form: 'partial';
  /** The unit that is counted once or has one number: a person, a group or a session. Rows have it as `actor`. */
  readonly actor: Expression | null;
  /** Whether a row aggregates several events. */
  readonly isGrouped: boolean;
  readonly parts: Readonly<Record<string, MeasurePart>>;
  /** Computed over rows, with one per actor. */
  readonly value: Expression;
  /** The same computed directly over events; null if both steps are needed. */
  readonly direct: Expression | null;
}

/** An expression that must be computed over the events themselves. */
export interface WholeMeasure {
  readonly form: 'whole';
  readonly direct: Expression;
}

export type Measure = PartialMeasure | WholeMeasure;

/** The measure of a series. @throws QueryError */
export function measureOf(series: TrendsSeries, attr: string): Measure {
  const { math } = series;
  if (isPropertyMath(math)) return propertyMeasure(series, math, attr);
  if (isPerActorMath(math)) return perActorMeasure(math.replace(/_count_per_actor$/, '') as PropertyMath);
  if (isFirstTimeMath(math)) return distinct(buildField('person_id'));
  switch (math) {
    case 'dau':
    case 'weekly_active':
    case 'monthly_active':
      return distinct(buildField('person_id'));
    case 'unique_session':
      return distinct(buildField('$session_id'));
    case 'unique_group':
      return distinct(groupKey(series, attr));
    case 'hogql':
      return { form: 'whole', direct: hogqlMath(series, attr) };
    default:
      return {
        form: 'partial',
        actor: null,
        isGrouped: true,
        parts: { amount: partOf(countOfEvents, 'sum', 'amount') },
        value: buildExpression('sum(amount)'),
        direct: countOfEvents,
      };
  }
}

function propertyMeasure(series: TrendsSeries, math: PropertyMath, attr: string): PartialMeasure {
  const { math_property: property, math_property_type: type, math_multiplier: by } = series;
  if (!property)
    throw new QueryError('invalid_input', `math ${math} requires math_property.`, {
      attr: `${attr}__math_property`,
    });
  if (property === '$session_duration') return sessionMeasure(math, by);
  const number = buildExpression('toFloat({value})', { value: propertyOf(property, type, attr) });
  // JSON has no NaN and no Infinity: a text that reads like one is no number, and must not swallow the others.
  const x = multiplied(buildExpression('if(isFinite({number}), {number}, null)', { number }), by);
  const direct = buildExpression(statistics[math], { x });
  const base = { form: 'partial', actor: null, direct } as const;
  switch (math) {
    case 'sum':
    case 'min':
    case 'max':
      return {
        ...base,
        isGrouped: true,
        parts: { amount: partOf(direct, math, 'amount') },
        value: buildExpression(`${math}(amount)`),
      };
    case 'avg':
      return {
        ...base,
        isGrouped: true,
        parts: {
          amount: partOf(buildExpression('sum({x})', { x }), 'sum', 'amount'),
          numbers: partOf(buildExpression('count({x})', { x }), 'sum', 'numbers'),
        },
        value: buildExpression('sum(amount) / nullIf(sum(numbers), 0)'),
      };
    default:
      return {
        ...base,
        isGrouped: false,
        parts: { amount: partOf(x, 'any', 'amount') },
        value: buildExpression(statistics[math], { x: buildField('amount') }),
      };
  }
}

function propertyOf(property: string, type: string | null | undefined, attr: string): Expression {
  switch (type ?? 'event_properties') {
    case 'event_properties':
    case 'event':
    case 'numerical_event_properties':
      return buildField('properties', property);
    case 'person_properties':
    case 'person':
      return buildField('person', 'properties', property);
    case 'session_properties':
    case 'session':
      return buildField('session', property);
    default:
      throw new QueryError(
        'not_supported',
        'math_property_type must be event_properties, person_properties or session_properties.',
        { attr: `${attr}__math_property_type` },
      );
  }
}

/** Applies the series' multiplier. */
const multiplied = (number: Expression, by: number | null | undefined): Expression =>
  by === null || by === undefined || by === 1
    ? number
    : buildExpression('{number} * {multiplier}', { number, multiplier: { value: by } });

/** Each session has one duration per interval, however many events it has there. */
function sessionMeasure(math: PropertyMath, by: number | null | undefined): PartialMeasure {
  const duration = multiplied(buildExpression('toFloat(any(session.$session_duration))'), by);
  return {
    form: 'partial',
    actor: buildExpression("nullIf($session_id, '')"),
    isGrouped: true,
    parts: { amount: partOf(duration, 'any', 'amount') },
    value: buildExpression(statistics[math], { x: buildField('amount') }),
    direct: null,
  };
}

const perActorMeasure = (statistic: PropertyMath): PartialMeasure => ({
  form: 'partial',
  actor: buildField('person_id'),
  isGrouped: true,
  parts: { amount: partOf(countOfEvents, 'sum', 'amount') },
  value: buildExpression(statistics[statistic], { x: buildField('amount') }),
  direct: null,
});

const distinct = (actor: Expression): PartialMeasure => ({
  form: 'partial',
  actor,
  isGrouped: true,
  parts: {},
  value: buildExpression('count(actor)'),
  direct: null,
});

function groupKey({ math_group_type_index }: TrendsSeries, attr: string): Expression {
  if (typeof math_group_type_index !== 'number')
    throw new QueryError('invalid_input', 'math unique_group requires math_group_type_index.', {
      attr: `${attr}__math_group_type_index`,
    });
  return buildExpression("nullIf({key}, '')", { key: buildField(`$group_${math_group_type_index}`) });
}

function hogqlMath({ math_hogql }: TrendsSeries, attr: string): Expression {
  const path = `${attr}__math_hogql`;
  if (!math_hogql)
    throw new QueryError('invalid_input', 'math hogql requires an expression in math_hogql.', {
      attr: path,
    });
  return parseExpressionAt(math_hogql, path);
}

const partOf = (of: Expression, merge: string, name: string): MeasurePart => ({
  of,
  merged: buildExpression(`${merge}(${name})`),
});

const countOfEvents = buildExpression('count()');
