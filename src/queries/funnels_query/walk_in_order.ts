import type { Select } from '../../dialect/ast.ts';
import type { Attempts } from './attempts.ts';
import { withExclusions } from './exclusions.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, windowOf, type FunnelRows } from './rows.ts';
import { passThrough, selectFrom } from './select_from.ts';

/**
 * Walks a funnel with ordered steps, with one SELECT for each step: at an event of step n, the attempt continues from
 * the latest event of the previous step if the window that started with the first step is still open. In a strict
 * funnel it continues only from the directly preceding event.
 */
export function walkInOrder(plan: FunnelPlan, read: FunnelRows): Attempts {
  const rows = withExclusions(plan, read);
  const numbered = isNumbered(plan);
  const passed = [...columnsOf(rows), ...(numbered ? ['_number'] : [])];
  let walked = numbered
    ? selectFrom(rows.select, [
        ...passThrough(columnsOf(rows)),
        `row_number() over (${windowOf(rows)}) as _number`,
      ])
    : rows.select;
  walked = selectFrom(walked, [...passThrough(passed), ...firstStep(plan)]);
  for (let step = 2; step <= plan.length; step += 1) walked = nextStep(plan, { rows, passed, walked }, step);
  return toAttempts(plan, rows, walked);
}

/** With optional steps, row numbers are needed to distinguish the steps of an attempt from those of an older one. */
const isNumbered = ({ order, optional }: FunnelPlan): boolean =>
  order === 'ordered' && optional.includes(true);

/** Whether rows that no later step needs can be dropped, because only the first attempt of each depth matters. */
const isPruned = ({ order, optional, guarded }: FunnelPlan): boolean =>
  order === 'ordered' && !optional.includes(true) && guarded.length === 0;

function firstStep(plan: FunnelPlan): readonly string[] {
  const isStep = matchesStep(plan, 1);
  return [
    `if(${isStep}, r._at, null) as _t1`,
    ...(isNumbered(plan) ? [`if(${isStep}, r._number, null) as _n1`] : []),
    ...(isTainted(plan) ? ['0 as _tainted'] : []),
  ];
}

const isTainted = ({ guarded, order }: FunnelPlan): boolean => guarded.length > 0 && order === 'ordered';

interface Walk {
  readonly rows: FunnelRows;
  readonly passed: readonly string[];
  readonly walked: Select;
}

/** Steps from which an attempt can continue: the previous one, and those before it as far as it is optional. */
function sourcesOf({ optional }: FunnelPlan, step: number): readonly number[] {
  const required = numbersBetween(1, step - 1).findLast((one) => !optional[one - 1]) ?? 1;
  return numbersBetween(required, step - 1).toReversed();
}

function nextStep(plan: FunnelPlan, { rows, passed, walked }: Walk, step: number): Select {
  const { order, windowSeconds } = plan;
  const frame = order === 'strict' ? '' : ' rows between unbounded preceding and 1 preceding';
  const fetch = order === 'strict' ? 'lag' : 'max';
  const source = step - 1;
  const sources = sourcesOf(plan, step);
  const numbered = isNumbered(plan);
  const columns = [...passThrough(passed)];
  const kinds = numbered ? (['t', 'n'] as const) : (['t'] as const);
  for (const kind of kinds)
    for (const stepNumber of numbersBetween(1, source)) {
      const value =
        stepNumber === source
          ? `r._${kind}${stepNumber}`
          : `if(r._t${source} is null, null, r._${kind}${stepNumber})`;
      columns.push(`${fetch}(${value}) over w as _f${source}_${kind}${stepNumber}`);
    }
  for (const earlier of sources.slice(1))
    for (const kind of kinds)
      for (const stepNumber of numbersBetween(1, earlier))
        columns.push(`r._f${earlier}_${kind}${stepNumber} as _f${earlier}_${kind}${stepNumber}`);
  const open = (from: number): string => `_f${from}_t1 + ${windowSeconds} >= r._at`;
  const continuations = sources.map((from) => {
    const taint = taintOf(plan, from, step);
    return { from, isOpen: `${matchesStep(plan, step)} and ${open(from)}`, taint };
  });
  const choose = (value: (from: number) => string, otherwise: string): string => {
    const branches = continuations.flatMap(({ from, isOpen, taint }) => [
      isOpen,
      taint === null ? value(from) : `if(${taint}, ${otherwise}, ${value(from)})`,
    ]);
    return `multiIf(${branches.join(', ')}, ${otherwise})`;
  };
  const keptValue = (kind: string, stepNumber: number): string =>
    isPruned(plan)
      ? `if(r._t${source} is not null and _f${source}_t1 is not null, null, r._${kind}${stepNumber})`
      : `r._${kind}${stepNumber}`;
  for (const kind of kinds) {
    for (const stepNumber of numbersBetween(1, source))
      columns.push(
        `${choose((from) => (stepNumber > from ? 'null' : fetched(plan, from, kind, stepNumber)), keptValue(kind, stepNumber))} as _${kind}${stepNumber}`,
      );
    columns.push(`${choose(() => (kind === 't' ? 'r._at' : 'r._number'), 'null')} as _${kind}${step}`);
  }
  if (isTainted(plan)) columns.push(`${taintedSql(continuations, step)} as _tainted`);
  const next = selectFrom(walked, columns, { window: `${windowOf(rows)}${frame}` });
  if (!isPruned(plan) || step === plan.length) return next;
  const names = [...passed, ...numbersBetween(1, step).map((stepNumber) => `_t${stepNumber}`)];
  return selectFrom(next, passThrough(names), { where: `r._t1 is not null or ${isLater(plan, step)}` });
}

/** The fetched value of a step, or null if an optional step was done in an older attempt. */
function fetched(plan: FunnelPlan, from: number, kind: 't' | 'n', stepNumber: number): string {
  const value = `_f${from}_${kind}${stepNumber}`;
  if (!isNumbered(plan) || stepNumber === from || !plan.optional[stepNumber - 1]) return value;
  const required = numbersBetween(1, stepNumber - 1).findLast((one) => !plan.optional[one - 1]) ?? 1;
  return `if(_f${from}_n${stepNumber} > _f${from}_n${required}, ${value}, null)`;
}

/** The condition that an exclusion is between two steps of an attempt; null if none can be. */
function taintOf(plan: FunnelPlan, from: number, step: number): string | null {
  if (!isTainted(plan)) return null;
  const conditions = plan.guarded
    .filter((guarded) => guarded > from && guarded <= step)
    .map((guarded) => `ifNull(r._before${guarded} > _f${from}_t${from}, false)`);
  return conditions.length === 0 ? null : `(${conditions.join(' or ')})`;
}

function taintedSql(
  continuations: readonly { readonly isOpen: string; readonly taint: string | null }[],
  step: number,
): string {
  const branches = continuations.flatMap(({ isOpen, taint }) => [
    isOpen,
    taint === null ? 'r._tainted' : `if(${taint}, ${step}, r._tainted)`,
  ]);
  return `multiIf(${branches.join(', ')}, r._tainted)`;
}

/** The condition that an event does a step after this one. */
function isLater({ definitionOfStep }: FunnelPlan, step: number): string {
  const bits = new Set(definitionOfStep.slice(step).map((definition) => 2 ** definition));
  return `bitAnd(r._steps, ${[...bits].reduce((sum, bit) => sum + bit, 0)}) > 0`;
}

function toAttempts(plan: FunnelPlan, rows: FunnelRows, walked: Select): Attempts {
  const { guarded, length } = plan;
  const deepest = numbersBetween(1, length).toReversed();
  const depth = `multiIf(${deepest.flatMap((step) => [`r._t${step} is not null`, String(step)]).join(', ')}, 0)`;
  const extraColumns = rows.extraColumns.filter((name) => name === '_value');
  const columns = [
    ...passThrough([...rows.keys, ...rows.order, ...extraColumns]),
    ...numbersBetween(1, length).map((step) => `r._t${step} as _t${step}`),
  ];
  if (guarded.length === 0)
    return {
      ...rows,
      extraColumns,
      select: selectFrom(walked, [...columns, `${depth} as _depth`], { where: 'r._t1 is not null' }),
    };
  const reached = isTainted(plan) ? `greatest(${depth}, r._tainted)` : depth;
  const broken = deepest.flatMap((step) => [
    `r._t${step} is not null`,
    `not (${isBarredBehind(plan, step)})`,
  ]);
  const counts = `multiIf(${isTainted(plan) ? `r._tainted > ${depth}, false, ` : ''}${broken.join(', ')}, false)`;
  return {
    ...rows,
    extraColumns,
    select: selectFrom(walked, [...columns, `${reached} as _depth`, `${counts} as _counts`], {
      where: `r._t1 is not null${isTainted(plan) ? ' or r._tainted > 0' : ''}`,
    }),
  };
}

/**
 * The condition that an exclusion follows an attempt that ended with this step while the next one could still be done.
 */
function isBarredBehind(plan: FunnelPlan, step: number): string {
  const { guarded, optional, length, windowSeconds } = plan;
  const required = numbersBetween(step + 1, length).find((one) => !optional[one - 1]) ?? length;
  const conditions = guarded
    .filter((one) => one > step && one <= required)
    .map((one) => `ifNull(r._after${one} <= r._t1 + ${windowSeconds}, false)`);
  return conditions.length === 0 ? 'false' : conditions.join(' or ');
}
