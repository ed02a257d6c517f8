import type { Attempts } from './attempts.ts';
import { withExclusions } from './exclusions.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { handedOn, stage } from './stage.ts';

/** A step among those of the same definition: the n-th of them is done by the n-th nearest event. */
interface Slot {
  readonly step: number;
  readonly definition: number;
  readonly place: number;
}

/**
 * Walks through a funnel whose steps may be done in any order: at each event the steps are counted of which there is an
 * event within the window that ends here, and their times are those of the latest ones. For a trend, whose attempts count
 * for the interval in which they begin, the window begins at the event instead.
 */
export function walkInAnyOrder(plan: FunnelPlan, read: FunnelRows): Attempts {
  const rows = withExclusions(plan, read);
  const slots = slotsOf(plan);
  const names = columnsOf(rows);
  const nearest = nearestEvents(plan, rows, slots);
  const timed = stage(nearest, [
    ...handedOn(names),
    ...slots.map((slot) => `${timeText(plan, slot)} as _t${slot.step}`),
  ]);
  const times = slots.map(({ step }) => `_t${step}`);
  const isAny = slots.map(({ step }) => `(${matchesStep(plan, step)})`).join(' or ');
  const counted = stage(
    timed,
    [
      ...handedOn([...names, ...times]),
      `${times.map((name) => `if(r.${name} is null, 0, 1)`).join(' + ')} as _depth`,
    ],
    { where: typeof plan.attribution === 'object' && plan.attribution !== null ? isAny : null },
  );
  const further = rows.further.filter((name) => name === '_value');
  const columns = [
    ...handedOn([...rows.keys, ...rows.order, ...further, ...times, '_depth']),
    ...(plan.byEntrance ? ['r._bucket as _entrance'] : []),
    ...countsText(plan, times),
  ];
  const keys = plan.byEntrance ? [...rows.keys, '_entrance'] : rows.keys;
  return { select: stage(counted, columns), keys, order: rows.order, further };
}

function slotsOf({ definitionOfStep }: FunnelPlan): readonly Slot[] {
  return definitionOfStep.map((definition, index) => ({
    step: index + 1,
    definition,
    place: definitionOfStep.slice(0, index + 1).filter((one) => one === definition).length,
  }));
}

const nearestName = ({ definition, place }: Slot): string => `_d${definition}_${place}`;
const earlierName = ({ definition, place }: Slot): string => `_e${definition}_${place}`;

/** Adds, for each slot, when the event was that does it at this row, the row's own among them. */
function nearestEvents(plan: FunnelPlan, rows: FunnelRows, slots: readonly Slot[]): Attempts['select'] {
  const direction = plan.byEntrance ? ' desc' : '';
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${rows.order.map((name) => `r.${name}${direction}`).join(', ')}`;
  const nearest = plan.byEntrance ? 'min' : 'max';
  let { select } = rows;
  let names = columnsOf(rows);
  for (const place of numbersBetween(1, Math.max(...slots.map((slot) => slot.place)))) {
    const layer = slots.filter((slot) => slot.place === place);
    const repeated = layer.filter(({ definition }) =>
      slots.some((slot) => slot.definition === definition && slot.place > place),
    );
    // The nearest event but one is what was nearest when the row before this one was met.
    const done = (slot: Slot): string => {
      const time = place === 1 ? 'r._at' : `r.${earlierName({ ...slot, place: place - 1 })}`;
      return `if(${matchesStep(plan, slot.step)}, ${time}, null)`;
    };
    const rest = `over (${window} rows between unbounded preceding and 1 preceding)`;
    select = stage(
      select,
      [
        ...handedOn(names),
        ...layer.map((slot) => `${nearest}(${done(slot)}) over w as ${nearestName(slot)}`),
        ...repeated.map((slot) => `${nearest}(${done(slot)}) ${rest} as ${earlierName(slot)}`),
      ],
      { window: `${window} rows between unbounded preceding and current row` },
    );
    names = [...names, ...layer.map(nearestName), ...repeated.map(earlierName)];
  }
  return select;
}

/** When the slot's event was; null outside of the window. */
function timeText({ byEntrance, windowSeconds }: FunnelPlan, slot: Slot): string {
  const time = `r.${nearestName(slot)}`;
  const isOpen = byEntrance ? `${time} <= r._at + ${windowSeconds}` : `${time} + ${windowSeconds} >= r._at`;
  return `if(${isOpen}, ${time}, null)`;
}

/** Whether no exclusion stands between the events of an attempt, or follows one that is not finished. */
function countsText(plan: FunnelPlan, times: readonly string[]): readonly string[] {
  const { byEntrance, guarded, length, windowSeconds } = plan;
  const [guard] = guarded;
  if (guard === undefined) return [];
  const own = times.map((name) => `ifNull(r.${name}, r._at)`).join(', ');
  const open = `+ ${windowSeconds}`;
  const isBroken = byEntrance
    ? `if(r._depth = ${length}, r._after${guard} < greatest(${own}), r._after${guard} <= r._at ${open})`
    : `r._before${guard} > least(${own}) or r._depth < ${length} and r._after${guard} <= least(${own}) ${open}`;
  return [`not ifNull(${isBroken}, false) as _counts`];
}
