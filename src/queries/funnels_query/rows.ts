import type { Select } from '../../dialect/ast.ts';
import type { FunnelAbout } from './about.ts';
import { withAttribution } from './attribution.ts';
import { withEntrances } from './entrances.ts';
import type { FunnelPlan } from './plan.ts';
import { readEvents } from './read_events.ts';
import { handedOn, stage } from './stage.ts';

/** Events as a walk takes them. */
export interface FunnelRows {
  readonly select: Select;
  /** Columns that tell whose walk a row belongs to. */
  readonly keys: readonly string[];
  /** Columns that the rows of a walk are sorted by. */
  readonly order: readonly string[];
  /** Columns that the same rows have beside them. */
  readonly further: readonly string[];
}

/** The events of a funnel, sorted into walks. @throws QueryInvalid */
export function funnelRows(plan: FunnelPlan, about: FunnelAbout): FunnelRows {
  const read = readEvents(plan, about);
  const further = [
    ...(plan.exclusions.length === 0 ? [] : ['_barred']),
    ...(plan.attribution === null ? [] : ['_own']),
    ...(plan.byEntrance ? ['_bucket'] : []),
  ];
  const ids = plan.hasIds ? ['_id'] : [];
  const rows: FunnelRows = plan.isExclusive
    ? { select: read, keys: ['_actor'], order: ['_at', '_steps', ...ids], further }
    : {
        select: stage(read, [
          ...handedOn(['_actor', '_at', '_steps', ...ids, ...further]),
          `r._steps = 0 ? ${2 ** plan.definitions.length} : bitAnd(r._steps, -r._steps) as _low`,
        ]),
        keys: ['_actor'],
        order: ['_at', '_low', ...ids],
        further: ['_steps', ...further],
      };
  const attributed = withAttribution(plan, rows);
  return plan.walksByEntrance ? withEntrances(plan, attributed) : attributed;
}

/** All columns of the rows. */
export const columnsOf = ({ keys, order, further }: FunnelRows): readonly string[] => [
  ...keys,
  ...order,
  ...further,
];

/** PARTITION BY and ORDER BY of a walk. */
export const windowOf = ({ keys, order }: FunnelRows): string =>
  `partition by ${keys.map((name) => `r.${name}`).join(', ')} order by ${order.map((name) => `r.${name}`).join(', ')}`;

/** Whether a step is only done by events of the walk's value. In any order, equal steps are not told apart. */
function isAttributed({ attribution, order, definitionOfStep }: FunnelPlan, step: number): boolean {
  if (attribution === null || typeof attribution === 'string') return false;
  if (order !== 'unordered') return attribution.step === step;
  return definitionOfStep[attribution.step - 1] === definitionOfStep[step - 1];
}

/** Whether an event is of a step, counted from 1. */
export function matchesStep(plan: FunnelPlan, step: number): string {
  const bit = 2 ** (plan.definitionOfStep[step - 1] ?? 0);
  const conditions = [plan.isExclusive ? `r._steps = ${bit}` : `bitAnd(r._steps, ${bit}) > 0`];
  if (isAttributed(plan, step)) conditions.push('r._own = r._value');
  if (step === 1 && plan.walksByEntrance) conditions.push('r._bucket = r._entrance');
  return conditions.join(' and ');
}
