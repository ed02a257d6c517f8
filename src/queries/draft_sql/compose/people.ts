import type { Expression, Select } from '../../../dialect/ast.ts';
import { derived, expressionOf, literal, reading, selectOf } from '../../../dialect/build.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { peopleCondition, requirePlain } from './conversions.ts';
import { eventsCondition } from './filters.ts';

/** The people who did one event and not another, or so many times, or how many they are. */
export function peopleQuery(draft: Draft): Select {
  requirePlain(draft);
  const { without, events } = draft;
  const [first, second] = events;
  if (first === undefined || second !== undefined)
    throw unclear('Name one event that people did, and at most one that they did not do.');
  const persons: Select = {
    ...selectOf(
      'select person_id, count() as total, max(timestamp) as last_time from events group by person_id',
    ),
    where: peopleCondition(draft, without === null ? [first] : [first, without]),
    having: havingOf(draft, first),
  };
  return draft.rows
    ? { ...persons, ...rowOrder(draft.limit) }
    : reading(selectOf('select count() as users from events'), derived(persons, 'persons'));
}

const signs = { more: '>', at_least: '>=', less: '<' } as const;

function havingOf({ without, times }: Draft, event: string): Expression | null {
  if (without !== null)
    return expressionOf('countIf({did}) > 0 and countIf({missed}) = 0', {
      did: eventsCondition([event]) ?? literal(true),
      missed: eventsCondition([without]) ?? literal(true),
    });
  return times && expressionOf(`count() ${signs[times.operator]} {count}`, { count: { value: times.count } });
}

const rowOrder = (limit: number | null): Pick<Select, 'orderBy' | 'limit'> =>
  selectOf(
    `select 1 from events order by last_time desc, person_id${limit === null ? '' : ` limit ${limit}`}`,
  );
