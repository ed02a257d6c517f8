import type { FunnelPlan } from './plan.ts';

/** Stands for all values beyond the limit. */
export const otherName = 'Other';
const defaultLimit = 25;

/** How many values have a separate list of steps. */
export const valueLimit = ({ query }: FunnelPlan): number =>
  query.breakdownFilter?.breakdown_limit ?? defaultLimit;

/** Whether values are formatted as lists: those of properties, and of several breakdowns. */
const isListed = ({ breakdowns }: FunnelPlan): boolean =>
  breakdowns.length > 1 || breakdowns.some(({ type }) => type === 'event' || type === 'person');

/** Formats a value of the column `_value` for results; null stands for all others. */
export function formatValue(plan: FunnelPlan, value: string | null): string | readonly string[] {
  if (value === null) return isListed(plan) ? [otherName] : otherName;
  if (plan.breakdowns.length > 1)
    return value === '' ? plan.breakdowns.map(() => '') : (JSON.parse(value) as readonly string[]);
  return isListed(plan) ? [value] : value;
}

/** The value of the column `_value` for a value in a request. */
export function storedValue(plan: FunnelPlan, value: string | number | readonly (string | number)[]): string {
  const values = typeof value === 'object' ? value.map(String) : [String(value)];
  if (plan.breakdowns.length <= 1) return values[0] ?? '';
  return values.every((one) => one === '') ? '' : JSON.stringify(values);
}
