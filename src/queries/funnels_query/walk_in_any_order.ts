import type { Attempts } from './attempts.ts';
import { withExclusions } from './exclusions.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { passThrough, selectFrom } from './select_from.ts';

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
