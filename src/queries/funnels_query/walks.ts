import type { Select } from '@exportd/dialect/ast';
import { type FunnelPlan, numbersBetween } from './plan.ts';
import {
  type Attempts,
  columnsOf,
  type FunnelRows,
  matchesStep,
  passThrough,
  selectFrom,
  windowOf,
  withExclusions,
} from './rows.ts';

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

/** A step among those with the same definition: the n-th of them is done by the n-th nearest event. */
interface Slot {
  readonly step: number;
  readonly definition: number;
  readonly rank: number;
}

/**
 * Walks a funnel whose steps can be done in any order: at each event, counts the steps that have an event in the window
 * ending there, with the times of their latest events. In a trend, an attempt belongs to the interval in which it
 * starts, so the window starts at the event instead.
 */
export function walkInAnyOrder(plan: FunnelPlan, read: FunnelRows): Attempts {
  const rows = withExclusions(plan, read);
  const slots = slotsOf(plan);
  const names = columnsOf(rows);
  const nearest = nearestEvents(plan, rows, slots);
  const timed = selectFrom(nearest, [
    ...passThrough(names),
    ...slots.map((slot) => `${timeSql(plan, slot)} as _t${slot.step}`),
  ]);
  const times = slots.map(({ step }) => `_t${step}`);
  const isAny = slots.map(({ step }) => `(${matchesStep(plan, step)})`).join(' or ');
  const counted = selectFrom(
    timed,
    [
      ...passThrough([...names, ...times]),
      `${times.map((name) => `if(r.${name} is null, 0, 1)`).join(' + ')} as _depth`,
    ],
    { where: typeof plan.attribution === 'object' && plan.attribution !== null ? isAny : null },
  );
  const extraColumns = rows.extraColumns.filter((name) => name === '_value');
  const columns = [
    ...passThrough([...rows.keys, ...rows.order, ...extraColumns, ...times, '_depth']),
    ...(plan.splitsByEntry ? ['r._bucket as _entrance'] : []),
    ...countsSql(plan, times),
  ];
  const keys = plan.splitsByEntry ? [...rows.keys, '_entrance'] : rows.keys;
  return { select: selectFrom(counted, columns), keys, order: rows.order, extraColumns };
}

function slotsOf({ definitionOfStep }: FunnelPlan): readonly Slot[] {
  return definitionOfStep.map((definition, index) => ({
    step: index + 1,
    definition,
    rank: definitionOfStep.slice(0, index + 1).filter((one) => one === definition).length,
  }));
}

const nearestName = ({ definition, rank: rank }: Slot): string => `_d${definition}_${rank}`;
const earlierName = ({ definition, rank: rank }: Slot): string => `_e${definition}_${rank}`;

/** Adds, for each slot, the time of the event that does it as of this row, including the row itself. */
function nearestEvents(plan: FunnelPlan, rows: FunnelRows, slots: readonly Slot[]): Attempts['select'] {
  const direction = plan.splitsByEntry ? ' desc' : '';
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${rows.order.map((name) => `r.${name}${direction}`).join(', ')}`;
  const nearest = plan.splitsByEntry ? 'min' : 'max';
  let { select } = rows;
  let names = columnsOf(rows);
  for (const rank of numbersBetween(1, Math.max(...slots.map((slot) => slot.rank)))) {
    const layer = slots.filter((slot) => slot.rank === rank);
    const repeated = layer.filter(({ definition }) =>
      slots.some((slot) => slot.definition === definition && slot.rank > rank),
    );
    // The second nearest event is the one that was nearest at the previous match.
    const done = (slot: Slot): string => {
      const time = rank === 1 ? 'r._at' : `r.${earlierName({ ...slot, rank: rank - 1 })}`;
      return `if(${matchesStep(plan, slot.step)}, ${time}, null)`;
    };
    const rest = `over (${window} rows between unbounded preceding and 1 preceding)`;
    select = selectFrom(
      select,
      [
        ...passThrough(names),
        ...layer.map((slot) => `${nearest}(${done(slot)}) over w as ${nearestName(slot)}`),
        ...repeated.map((slot) => `${nearest}(${done(slot)}) ${rest} as ${earlierName(slot)}`),
      ],
      { window: `${window} rows between unbounded preceding and current row` },
    );
    names = [...names, ...layer.map(nearestName), ...repeated.map(earlierName)];
  }
  return select;
}

/** The time of the slot's event; null outside of the window. */
function timeSql({ splitsByEntry, windowSeconds }: FunnelPlan, slot: Slot): string {
  const time = `r.${nearestName(slot)}`;
  const isOpen = splitsByEntry
    ? `${time} <= r._at + ${windowSeconds}`
    : `${time} + ${windowSeconds} >= r._at`;
  return `if(${isOpen}, ${time}, null)`;
}

/** Whether no exclusion is between the events of an attempt, or follows an incomplete one. */
function countsSql(plan: FunnelPlan, times: readonly string[]): readonly string[] {
  const { splitsByEntry, guarded, length, windowSeconds } = plan;
  const [guard] = guarded;
  if (guard === undefined) return [];
  const own = times.map((name) => `ifNull(r.${name}, r._at)`).join(', ');
  const open = `+ ${windowSeconds}`;
  const isBroken = splitsByEntry
    ? `if(r._depth = ${length}, r._after${guard} < greatest(${own}), r._after${guard} <= r._at ${open})`
    : `r._before${guard} > least(${own}) or r._depth < ${length} and r._after${guard} <= least(${own}) ${open}`;
  return [`not ifNull(${isBroken}, false) as _counts`];
}

/**
 * How far actors got, by the interval in which they entered, for a trend without exclusions. Walks the rows backward
 * and finds, for each event of step 1, when the following steps are first done. Each row is visited once, however many
 * intervals it can be reached from. `_depth` distinguishes only the steps that the trend compares.
 */
export function walkBackward(plan: FunnelPlan, rows: FunnelRows): Select {
  const names = columnsOf(rows);
  const { from, to } = comparedSteps(plan);
  const targets = from === 1 || from === to ? [to] : [from, to];
  const descending = rows.order.map((name) => `r.${name} desc`).join(', ');
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${descending}`;
  const isStrict = plan.order === 'strict';
  let select = selectFrom(rows.select, [
    ...passThrough(names),
    ...targets.map((target) => doneFrom(plan, target, target)),
  ]);
  for (let step = to; step > 1; step -= 1) {
    const open = targets.filter((target) => target >= step);
    const waiting = targets.filter((target) => target < step);
    const next = selectFrom(
      select,
      [
        ...passThrough([...names, ...waiting.map(doneName)]),
        ...open.map((target) => {
          const done = isStrict ? `lag(r.${doneName(target)})` : `min(r.${doneName(target)})`;
          return `if(${matchesStep(plan, step - 1)}, ${done} over w, null) as ${doneName(target)}`;
        }),
      ],
      {
        window: isStrict ? window : `${window} rows between unbounded preceding and 1 preceding`,
      },
    );
    // Actors that got no further still entered, so the last SELECT drops no rows.
    const isPruned = !isStrict && step > 2;
    select = isPruned
      ? selectFrom(next, passThrough([...names, ...targets.map(doneName)]), {
          where: isNeeded(plan, targets, step - 1),
        })
      : next;
  }
  return byInterval(plan, rows, select);
}

/** The steps that a trend compares. */
export function comparedSteps({ query }: FunnelPlan): { readonly from: number; readonly to: number } {
  const { funnelFromStep, funnelToStep } = query.funnelsFilter;
  return { from: (funnelFromStep ?? 0) + 1, to: (funnelToStep ?? query.series.length - 1) + 1 };
}

/** The column with the time at which all steps from a row's own to the target are done. */
const doneName = (target: number): string => `_done${target}`;

const doneFrom = (plan: FunnelPlan, step: number, target: number): string =>
  `if(${matchesStep(plan, step)}, r._at, null) as ${doneName(target)}`;

/** The condition that a row leads to a target, from this step or possibly from an earlier one. */
function isNeeded(plan: FunnelPlan, targets: readonly number[], step: number): string {
  return [
    ...targets.map((target) => `r.${doneName(target)} is not null`),
    ...numbersBetween(1, step - 1).map((one) => matchesStep(plan, one)),
  ].join(' or ');
}

function byInterval(plan: FunnelPlan, rows: FunnelRows, select: Select): Select {
  const { from, to } = comparedSteps(plan);
  const reached = (target: number): string =>
    `ifNull(r.${doneName(target)} <= r._at + ${plan.windowSeconds}, false)`;
  const depth = [
    `${reached(to)}, ${to}`,
    ...(from > 1 && from < to ? [`${reached(from)}, ${from}`] : []),
    '1',
  ].join(', ');
  const keys = [...rows.keys, ...rows.extraColumns.filter((name) => name === '_value')];
  const entered = selectFrom(
    select,
    [...passThrough(keys), 'r._bucket as _entrance', `multiIf(${depth}) as _depth`],
    { where: matchesStep(plan, 1) },
  );
  const grouped = [...keys, '_entrance'];
  return selectFrom(entered, [...passThrough(grouped), 'max(r._depth) as _depth'], {
    rest: `group by ${grouped.map((name) => `r.${name}`).join(', ')}`,
  });
}
