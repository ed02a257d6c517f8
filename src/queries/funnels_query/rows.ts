import type { Select } from '../../dialect/ast.ts';
import type { FunnelPlan } from './plan.ts';

/** The events of walks. */
export interface FunnelRows {
  readonly select: Select;
  /** Columns that identify the walk of a row. */
  readonly keys: readonly string[];
  /** Columns that order the rows of a walk. */
  readonly order: readonly string[];
  /** Further columns. */
  readonly extraColumns: readonly string[];
}

/** All columns of the rows. */
export const columnsOf = ({ keys, order, extraColumns }: FunnelRows): readonly string[] => [
  ...keys,
  ...order,
  ...extraColumns,
];

/** PARTITION BY and ORDER BY of a walk. */
export const windowOf = ({ keys, order }: FunnelRows): string =>
  `partition by ${keys.map((name) => `r.${name}`).join(', ')} order by ${order.map((name) => `r.${name}`).join(', ')}`;

/** Whether only events with the walk's breakdown value do a step. In any order, equal steps are not distinguished. */
function isAttributed({ attribution, order, definitionOfStep }: FunnelPlan, step: number): boolean {
  if (attribution === null || typeof attribution === 'string') return false;
  if (order !== 'unordered') return attribution.step === step;
  return definitionOfStep[attribution.step - 1] === definitionOfStep[step - 1];
}

/** The condition that an event does a step, counted from 1. */
export function matchesStep(plan: FunnelPlan, step: number): string {
  const bit = 2 ** (plan.definitionOfStep[step - 1] ?? 0);
  const conditions = [plan.isExclusive ? `r._steps = ${bit}` : `bitAnd(r._steps, ${bit}) > 0`];
  if (isAttributed(plan, step)) conditions.push('r._own = r._value');
  if (step === 1 && plan.walksByEntry) conditions.push('r._bucket = r._entrance');
  return conditions.join(' and ');
}
