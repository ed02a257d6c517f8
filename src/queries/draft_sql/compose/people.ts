import type { Expression, Select } from '../../../dialect/ast.ts';
import {
  buildDerivedTable,
  buildExpression,
  buildLiteral,
  withFrom,
  buildSelect,
} from '../../../dialect/ast_builders.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { peopleCondition, requireUngrouped } from './conversions.ts';
import { eventsCondition } from './filters.ts';

/** Composes a query for people who did one event and not another, or did it so many times: a list, or their number. */
export function peopleQuery(draft: Draft): Select {
  requireUngrouped(draft);
  const { without, events } = draft;
  const [first, second] = events;
  if (first === undefined || second !== undefined)
    throw unclear('Name exactly one event that people did, and at most one that they did not do.');
  const persons: Select = {
    ...buildSelect(
      'select person_id, count() as total, max(timestamp) as last_time from events group by person_id',
    ),
    where: peopleCondition(draft, without === null ? [first] : [first, without]),
    having: havingOf(draft, first),
  };
  return draft.rows
    ? { ...persons, ...rowOrder(draft.limit) }
    : withFrom(buildSelect('select count() as users from events'), buildDerivedTable(persons, 'persons'));
}

const signs = { more: '>', at_least: '>=', less: '<' } as const;

function havingOf({ without, times }: Draft, event: string): Expression | null {
  if (without !== null)
    return buildExpression('countIf({did}) > 0 and countIf({missed}) = 0', {
      did: eventsCondition([event]) ?? buildLiteral(true),
      missed: eventsCondition([without]) ?? buildLiteral(true),
    });
  return (
    times && buildExpression(`count() ${signs[times.operator]} {count}`, { count: { value: times.count } })
  );
}

const rowOrder = (limit: number | null): Pick<Select, 'orderBy' | 'limit'> =>
  buildSelect(
    `select 1 from events order by last_time desc, person_id${limit === null ? '' : ` limit ${limit}`}`,
  );
