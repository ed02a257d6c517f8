import type { Expression, OrderItem, Select } from '../../../dialect/ast.ts';
import { expressionOf, fieldOf, named, selectOf } from '../../../dialect/build.ts';
import { parseOrderItem } from '../../../dialect/parser/parse.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conjunction } from './conjunction.ts';
import { eventsCondition, filterCondition } from './filters.ts';
import { subjectOf, type Subject } from './subject.ts';
import { periodCondition } from './times.ts';

/** A query that lists rows, the newest first: events, persons, or the people who did something. */
export function rowsQuery(draft: Draft): Select {
  if (draft.bucket !== null || draft.compared !== null || draft.measures.length > 0)
    throw unclear('It is not clear whether to list rows or to compute numbers; ask for one of them.');
  const subject = subjectOf(draft);
  if (subject.table === 'sessions')
    return listed(draft, subject, sessionColumns, '$start_timestamp', 'session_id');
  if (subject.table === 'persons') return listed(draft, subject, personColumns(draft), 'created_at', 'id');
  if (draft.people && draft.subject !== 'events') return peopleOfEvents(draft, subject);
  return listed(draft, subject, eventColumns(draft, subject), 'timestamp', 'uuid');
}

const fields = (...names: readonly string[]): readonly Expression[] => names.map((name) => fieldOf(name));

const sessionColumns = fields('session_id', 'distinct_id', '$start_timestamp', '$session_duration');
const personColumns = (draft: Draft): readonly Expression[] => [
  ...fields('id', 'created_at'),
  ...draft.breakdowns.flatMap((one) =>
    one.kind === 'property' ? [fieldOf('properties', one.property.key)] : [],
  ),
  ...fields('properties'),
];
const eventColumns = (draft: Draft, subject: Subject): readonly Expression[] => [
  ...fields('timestamp', 'event', 'distinct_id'),
  ...draft.breakdowns.flatMap((one) => (one.kind === 'property' ? [subject.property(one.property)] : [])),
  ...fields('properties'),
];

function listed(
  draft: Draft,
  subject: Subject,
  columns: readonly Expression[],
  time: string,
  id: string,
): Select {
  return {
    ...selectOf(`select 1 from ${subject.table}${limitOf(draft)}`),
    columns,
    where: rowsCondition(draft, subject),
    orderBy: [descending(fieldOf(time)), parsedOrder(fieldOf(id))],
  };
}

/** Who did it, how often and when last. */
function peopleOfEvents(draft: Draft, subject: Subject): Select {
  return {
    ...selectOf(`select 1 from events group by person_id${limitOf(draft)}`),
    columns: [
      fieldOf('person_id'),
      named(expressionOf('count()'), 'total'),
      named(expressionOf('max(timestamp)'), 'last_time'),
    ],
    where: conjunction([rowsCondition(draft, subject), expressionOf('person_id is not null')]),
    orderBy: [descending(fieldOf('total')), parsedOrder(fieldOf('person_id'))],
  };
}

const limitOf = ({ limit }: Draft): string => (limit === null ? '' : ` limit ${limit}`);
const parsedOrder = (expression: Expression): OrderItem => ({ ...parseOrderItem('1'), expression });
const descending = (expression: Expression): OrderItem => ({ ...parsedOrder(expression), descending: true });

const rowsCondition = (draft: Draft, subject: Subject): Expression | null =>
  conjunction([
    subject.table === 'events' ? eventsCondition(draft.events) : null,
    draft.period && periodCondition(draft.period, subject.time),
    ...draft.filters.map((filter) => filterCondition(filter, subject)),
  ]);
