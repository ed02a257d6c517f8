import type { Expression } from '../../../dialect/ast.ts';
import { expressionOf, joined } from '../../../dialect/build.ts';
import type { Bucket, Period, Unit } from '../draft.ts';

const capitalised = (unit: Unit): string => `${unit.slice(0, 1).toUpperCase()}${unit.slice(1)}`;

/** What rows are put together by, and its name. */
export function bucketOf(bucket: Bucket, time: Expression): Expression {
  if (bucket === 'hour_of_day') return expressionOf('toHour({time})', { time });
  if (bucket === 'day_of_week') return expressionOf('toDayOfWeek({time})', { time });
  return expressionOf(`toStartOf${capitalised(bucket)}({time})`, { time });
}

/** Whether a time lies in a period; null for all of them. */
export function periodCondition(period: Period, time: Expression): Expression | null {
  switch (period.kind) {
    case 'always':
      return null;
    case 'last': {
      const unit = period.unit.toUpperCase();
      return expressionOf(`{time} >= now() - INTERVAL ${period.count} ${unit}`, { time });
    }
    case 'calendar': {
      const from = expressionOf(`{time} >= ${startOf(period.unit, period.ago)}`, { time });
      const before =
        period.ago === 0 ? null : expressionOf(`{time} < ${startOf(period.unit, period.ago - 1)}`, { time });
      return joined('and', [from, before]);
    }
    case 'days': {
      const bound = (sign: string, day: string | null): Expression | null =>
        day === null ? null : expressionOf(`{time} ${sign} toDateTime({day})`, { time, day: { value: day } });
      return joined('and', [bound('>=', period.from), bound('<', period.before)]);
    }
  }
}

/** The beginning of the unit some units before the one that is now. */
const startOf = (unit: Unit, ago: number): string =>
  `toStartOf${capitalised(unit)}(now()${ago === 0 ? '' : ` - INTERVAL ${ago} ${unit.toUpperCase()}`})`;
