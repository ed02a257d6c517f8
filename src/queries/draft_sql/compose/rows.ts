import type { Expression, OrderItem, Select } from '../../../dialect/ast.ts';
import { buildExpression, buildField, buildAlias, buildSelect } from '../../../dialect/ast_builders.ts';
import { parseOrderItem } from '../../../dialect/parser/parse.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conjunction } from './conjunction.ts';
import { eventsCondition, filterCondition } from './filters.ts';
import { queryTableOf, type QueryTable } from './query_table.ts';
import { periodCondition } from './times.ts';

/** Composes a query that lists rows, newest first: events, persons, or people who did something. */
export function rowsQuery(draft: Draft): Select {
  if (draft.bucket !== null || draft.compared !== null || draft.measures.length > 0)
    throw unclear('The prompt asks for both rows and numbers. Ask for one of them.');
  const table = queryTableOf(draft);
  if (table.name === 'sessions')
    return listed(draft, table, sessionColumns, '$start_timestamp', 'session_id');
  if (table.name === 'persons') return listed(draft, table, personColumns(draft), 'created_at', 'id');
  if (draft.people && draft.table !== 'events') return peopleOfEvents(draft, table);
  return listed(draft, table, eventColumns(draft, table), 'timestamp', 'uuid');
}

const fields = (...names: readonly string[]): readonly Expression[] => names.map((name) => buildField(name));

const sessionColumns = fields('session_id', 'distinct_id', '$start_timestamp', '$session_duration');
const personColumns = (draft: Draft): readonly Expression[] => [
  ...fields('id', 'created_at'),
  ...draft.breakdowns.flatMap((one) =>
    one.kind === 'property' ? [buildField('properties', one.property.key)] : [],
  ),
  ...fields('properties'),
];
const eventColumns = (draft: Draft, table: QueryTable): readonly Expression[] => [
  ...fields('timestamp', 'event', 'distinct_id'),
  ...draft.breakdowns.flatMap((one) => (one.kind === 'property' ? [table.property(one.property)] : [])),
  ...fields('properties'),
];

function listed(
  draft: Draft,
  table: QueryTable,
  columns: readonly Expression[],
  time: string,
  id: string,
): Select {
  return {
    ...buildSelect(`select 1 from ${table.name}${limitOf(draft)}`),
    columns,
    where: rowsCondition(draft, table),
    orderBy: [descending(buildField(time)), parsedOrder(buildField(id))],
  };
}

/** The people who did it, how often and when last. */
function peopleOfEvents(draft: Draft, table: QueryTable): Select {
  return {
    ...buildSelect(`select 1 from events group by person_id${limitOf(draft)}`),
    columns: [
      buildField('person_id'),
      buildAlias(buildExpression('count()'), 'total'),
      buildAlias(buildExpression('max(timestamp)'), 'last_time'),
    ],
    where: conjunction([rowsCondition(draft, table), buildExpression('person_id is not null')]),
    orderBy: [descending(buildField('total')), parsedOrder(buildField('person_id'))],
  };
}

const limitOf = ({ limit }: Draft): string => (limit === null ? '' : ` limit ${limit}`);
const parsedOrder = (expression: Expression): OrderItem => ({ ...parseOrderItem('1'), expression });
const descending = (expression: Expression): OrderItem => ({ ...parsedOrder(expression), descending: true });

const rowsCondition = (draft: Draft, table: QueryTable): Expression | null =>
  conjunction([
    table.name === 'events' ? eventsCondition(draft.events) : null,
    draft.period && periodCondition(draft.period, table.time),
    ...draft.filters.map((filter) => filterCondition(filter, table)),
  ]);
