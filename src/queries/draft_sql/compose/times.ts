import type { Expression } from '../../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../../dialect/ast_builders.ts';
import type { Bucket, Period, Unit } from '../draft.ts';

const capitalised = (unit: Unit): string => `${unit.slice(0, 1).toUpperCase()}${unit.slice(1)}`;

/** The expression that groups rows by time. */
export function bucketOf(bucket: Bucket, time: Expression): Expression {
  if (bucket === 'hour_of_day') return buildExpression('toHour({time})', { time });
  if (bucket === 'day_of_week') return buildExpression('toDayOfWeek({time})', { time });
  return buildExpression(`toStartOf${capitalised(bucket)}({time})`, { time });
}

/** The condition that a time is in a period; null for all times. */
export function periodCondition(period: Period, time: Expression): Expression | null {
  switch (period.kind) {
    case 'always':
      return null;
    case 'last': {
      const unit = period.unit.toUpperCase();
      return buildExpression(`{time} >= now() - INTERVAL ${period.count} ${unit}`, { time });
    }
    case 'calendar': {
      const from = buildExpression(`{time} >= ${startOf(period.unit, period.ago)}`, { time });
      const before =
        period.ago === 0
          ? null
          : buildExpression(`{time} < ${startOf(period.unit, period.ago - 1)}`, { time });
      return combineConditions('and', [from, before]);
    }
    case 'days': {
      const bound = (sign: string, day: string | null): Expression | null =>
        day === null
          ? null
          : buildExpression(`{time} ${sign} toDateTime({day})`, { time, day: { value: day } });
      return combineConditions('and', [bound('>=', period.from), bound('<', period.before)]);
    }
  }
}

/** The start of the unit some units before the current one. */
const startOf = (unit: Unit, ago: number): string =>
  `toStartOf${capitalised(unit)}(now()${ago === 0 ? '' : ` - INTERVAL ${ago} ${unit.toUpperCase()}`})`;
