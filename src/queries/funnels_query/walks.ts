import type { Select } from '@exportd/dialect/ast';
import { type FunnelPlan, numbersBetween } from './plan.ts';
import {
  type Attempts,
  columnsOf,
  endsAttempts,
  type FunnelRows,
  isNumbered,
  matchesStep,
  passThrough,
  selectFrom,
  windowOf,
  withExclusions,
} from './rows.ts';

/**
 * Walks a funnel with ordered steps: an event of step n continues the newest attempt that has reached step n - 1, unless
 * that attempt has reached step n already, or its window is over. An attempt is known by the time of its step 1. In a strict
 * funnel, an attempt is also over at an event that does not do its last step.
 */
export function walkInOrder(plan: FunnelPlan, read: FunnelRows): Attempts {
  const rows = withExclusions(plan, read);
  const passed = columnsOf(rows);
  let walked = selectFrom(rows.select, [...passThrough(passed), ...firstStep(plan)]);
  for (let step = 2; step <= plan.length; step += 1) walked = nextStep(plan, { rows, passed, walked }, step);
  return toAttempts(plan, rows, walked);
}

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

const fetchedName = (from: number, kind: string, step: number): string => `_f${from}_${kind}${step}`;

/** Columns of an attempt: the times and the numbers of its rows. */
const kindsOf = (plan: FunnelPlan): readonly ('t' | 'n')[] => (isNumbered(plan) ? ['t', 'n'] : ['t']);

/** The steps up to one whose columns a walk reads. Without optional steps, it reads the number of the last one only. */
const readSteps = ({ optional }: FunnelPlan, kind: 't' | 'n', last: number): readonly number[] =>
  kind === 't' || optional.includes(true) ? numbersBetween(1, last) : [last];

/** The columns with the newest attempt that has reached a step before this row. */
function fetchedNames(plan: FunnelPlan, from: number): readonly string[] {
  return [
    ...kindsOf(plan).flatMap((kind) =>
      readSteps(plan, kind, from).map((step) => fetchedName(from, kind, step)),
    ),
    ...(plan.order === 'strict' ? [`_over${from}`] : []),
  ];
}

/** The number of the last row at which attempts that had reached a step were over. */
const lastEnd = (plan: FunnelPlan, step: number): string =>
  `max(if(${endsAttempts(plan, step)}, r._number, null)) over w`;

function nextStep(plan: FunnelPlan, { rows, passed, walked }: Walk, step: number): Select {
  const window = `${windowOf(rows)} rows between unbounded preceding and 1 preceding`;
  const found = selectFrom(walked, foundColumns(plan, passed, step), { window });
  const isNew = isNewSql(plan, step);
  const [first, ...others] = sourcesOf(plan, step);
  const chosen = (value: (from: number) => string): string =>
    others.length === 0
      ? value(first ?? 1)
      : `multiIf(${sourcesOf(plan, step)
          .flatMap((from) => [`r._from = ${from}`, value(from)])
          .join(', ')}, null)`;
  const taints = sourcesOf(plan, step).flatMap((from) => {
    const taint = taintOf(plan, from, step);
    return taint === null ? [] : [`r._from = ${from} and ${taint}`];
  });
  const taken = taints.length === 0 ? isNew : `${isNew} and not (${taints.join(' or ')})`;
  const columns = [...passThrough(passed), `${taken} as _taken`];
  for (const kind of kindsOf(plan)) {
    for (const stepNumber of readSteps(plan, kind, step).slice(0, -1)) {
      const value = chosen((from) => (stepNumber > from ? 'null' : fetched(plan, from, kind, stepNumber)));
      columns.push(`if(_taken, ${value}, r._${kind}${stepNumber}) as _${kind}${stepNumber}`);
    }
    columns.push(`if(_taken, ${kind === 't' ? 'r._at' : 'r._number'}, null) as _${kind}${step}`);
  }
  if (isTainted(plan)) columns.push(`if(${isNew} and not _taken, ${step}, r._tainted) as _tainted`);
  for (const from of sourcesOf(plan, step))
    if (sourcesOf(plan, step + 1).includes(from)) columns.push(...passThrough(fetchedNames(plan, from)));
  const next = selectFrom(found, columns, step === plan.length ? {} : { window });
  if (!isPruned(plan) || step === plan.length) return next;
  const names = [...passed, ...numbersBetween(1, step).map((stepNumber) => `_t${stepNumber}`)];
  return selectFrom(next, passThrough(names), { where: `r._t1 is not null or ${isLater(plan, step)}` });
}

/**
 * Finds the attempt that a row of a step continues: `_from` is the step that it has reached, `_start` the time of its step
 * 1, and the columns of `fetchedNames` its times.
 */
function foundColumns(plan: FunnelPlan, passed: readonly string[], step: number): readonly string[] {
  const source = step - 1;
  const sources = sourcesOf(plan, step);
  const isStrict = plan.order === 'strict';
  const columns = [...passThrough([...passed, ...(isTainted(plan) ? ['_tainted'] : [])])];
  for (const kind of kindsOf(plan))
    for (const stepNumber of readSteps(plan, kind, source)) {
      const value =
        stepNumber === source
          ? `r._${kind}${stepNumber}`
          : `if(r._t${source} is null, null, r._${kind}${stepNumber})`;
      columns.push(`max(${value}) over w as ${fetchedName(source, kind, stepNumber)}`);
      // Of the attempts that have reached a depth, only the first one can be the result.
      columns.push(
        isPruned(plan)
          ? `if(r._t${source} is not null and ${fetchedName(source, 't', 1)} is not null, null, r._t${stepNumber}) as _t${stepNumber}`
          : `r._${kind}${stepNumber} as _${kind}${stepNumber}`,
      );
    }
  if (isStrict) columns.push(`ifNull(${lastEnd(plan, source)}, 0) as _over${source}`);
  for (const earlier of sources.slice(1)) columns.push(...passThrough(fetchedNames(plan, earlier)));
  const isOpen = (from: number): string =>
    [
      matchesStep(plan, step),
      `${fetchedName(from, 't', 1)} + ${plan.windowSeconds} >= r._at`,
      ...(isStrict ? [`${fetchedName(from, 'n', from)} > _over${from}`] : []),
    ].join(' and ');
  const choose = (value: (from: number) => string): string =>
    `multiIf(${sources.flatMap((from) => [isOpen(from), value(from)]).join(', ')}, null)`;
  columns.push(`${choose(String)} as _from`, `${choose((from) => fetchedName(from, 't', 1))} as _start`);
  return columns;
}

/** The condition that a row continues an attempt that has not reached the step before. */
function isNewSql(plan: FunnelPlan, step: number): string {
  // Only the first attempt at the last step can be the result.
  if (step === plan.length) return 'r._start is not null';
  const isFirst = 'ifNull(max(r._start) over w < r._start, true)';
  const isOver = `max(if(r._start is null, null, r._number)) over w <= ${lastEnd(plan, step)}`;
  const isNew = plan.order === 'strict' ? `(${isFirst} or ifNull(${isOver}, false))` : isFirst;
  return `r._start is not null and ${isNew}`;
}

/** The fetched value of a step, or null if an optional step was done in an older attempt. */
function fetched(plan: FunnelPlan, from: number, kind: 't' | 'n', stepNumber: number): string {
  const value = `r.${fetchedName(from, kind, stepNumber)}`;
  if (!plan.optional.includes(true) || stepNumber === from || !plan.optional[stepNumber - 1]) return value;
  const required = numbersBetween(1, stepNumber - 1).findLast((one) => !plan.optional[one - 1]) ?? 1;
  return `if(r.${fetchedName(from, 'n', stepNumber)} > r.${fetchedName(from, 'n', required)}, ${value}, null)`;
}

/** The condition that an exclusion is between two steps of an attempt; null if none can be. */
function taintOf(plan: FunnelPlan, from: number, step: number): string | null {
  if (!isTainted(plan)) return null;
  const conditions = plan.guarded
    .filter((guarded) => guarded > from && guarded <= step)
    .map((guarded) => `ifNull(r._before${guarded} > r.${fetchedName(from, 't', from)}, false)`);
  return conditions.length === 0 ? null : `(${conditions.join(' or ')})`;
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
 * Walks a funnel whose steps can be done in any order: at each event, counts the steps that have an event in the window that
 * starts there, with the times of their first events.
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
const laterName = ({ definition, rank: rank }: Slot): string => `_e${definition}_${rank}`;

/** Adds, for each slot, the time of the event that does it from this row on, which may do it itself. */
function nearestEvents(plan: FunnelPlan, rows: FunnelRows, slots: readonly Slot[]): Attempts['select'] {
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${rows.order.map((name) => `r.${name} desc`).join(', ')}`;
  let { select } = rows;
  let names = columnsOf(rows);
  for (const rank of numbersBetween(1, Math.max(...slots.map((slot) => slot.rank)))) {
    const layer = slots.filter((slot) => slot.rank === rank);
    const repeated = layer.filter(({ definition }) =>
      slots.some((slot) => slot.definition === definition && slot.rank > rank),
    );
    // The second nearest event is the one that is nearest at the next match.
    const done = (slot: Slot): string => {
      const time = rank === 1 ? 'r._at' : `r.${laterName({ ...slot, rank: rank - 1 })}`;
      return `if(${matchesStep(plan, slot.step)}, ${time}, null)`;
    };
    const rest = `over (${window} rows between unbounded preceding and 1 preceding)`;
    select = selectFrom(
      select,
      [
        ...passThrough(names),
        ...layer.map((slot) => `min(${done(slot)}) over w as ${nearestName(slot)}`),
        ...repeated.map((slot) => `min(${done(slot)}) ${rest} as ${laterName(slot)}`),
      ],
      { window: `${window} rows between unbounded preceding and current row` },
    );
    names = [...names, ...layer.map(nearestName), ...repeated.map(laterName)];
  }
  return select;
}

/** The time of the slot's event; null outside of the window. */
function timeSql({ windowSeconds }: FunnelPlan, slot: Slot): string {
  const time = `r.${nearestName(slot)}`;
  return `if(${time} <= r._at + ${windowSeconds}, ${time}, null)`;
}

/** Whether no exclusion is between the events of an attempt, or follows an incomplete one. */
function countsSql(plan: FunnelPlan, times: readonly string[]): readonly string[] {
  const { guarded, length, windowSeconds } = plan;
  const [guard] = guarded;
  if (guard === undefined) return [];
  const own = times.map((name) => `ifNull(r.${name}, r._at)`).join(', ');
  const isBroken = `if(r._depth = ${length}, r._after${guard} < greatest(${own}), r._after${guard} <= r._at + ${windowSeconds})`;
  return [`not ifNull(${isBroken}, false) as _counts`];
}

/**
 * How far actors got, by the interval in which they entered, for a trend in order without exclusions. Walks the rows backward
 * and finds, for each event of step 1, when the following steps are first done. Each row is visited once, however many
 * intervals it can be reached from. `_depth` distinguishes only the steps that the trend compares.
 */
export function walkBackward(plan: FunnelPlan, rows: FunnelRows): Select {
  const names = columnsOf(rows);
  const { from, to } = comparedSteps(plan);
  const targets = from === 1 || from === to ? [to] : [from, to];
  const descending = rows.order.map((name) => `r.${name} desc`).join(', ');
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${descending} rows between unbounded preceding and 1 preceding`;
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
        ...open.map(
          (target) =>
            `if(${matchesStep(plan, step - 1)}, min(r.${doneName(target)}) over w, null) as ${doneName(target)}`,
        ),
      ],
      { window },
    );
    // Actors that got no further still entered, so the last SELECT drops no rows.
    select =
      step > 2
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
