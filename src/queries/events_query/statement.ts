import type { Expression, Select } from '../../dialect/ast.ts';
import { joined, selectOf } from '../../dialect/build.ts';
import { withoutName } from '../aggregate_calls.ts';
import type { DialectReader, ReadOptions } from '../dialect_reader.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryContext } from '../query_kind.ts';
import { memberConditions, writtenConditions, type WrittenCondition } from './conditions.ts';
import { orderOf } from './order.ts';
import type { EventsQuery } from './schema.ts';
import { selectEntries, type EventEntry } from './select_entries.ts';

/** The one SELECT that a query is. */
export interface EventsStatement {
  readonly entries: readonly EventEntry[];
  readonly select: Select;
  /** Its pieces by the members that they are written in, so that a refusal can name one. */
  readonly pieces: readonly { readonly attr: string; readonly select: Select }[];
}

/**
 * @param ofPoint what the point of an insight asks of an event
 * @throws QueryInvalid that names the member at fault
 */
export function eventsStatement(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
  ofPoint: Expression | null,
): EventsStatement {
  const { ofEvents, ofRows } = writtenConditions(query.where);
  const entries = selectEntries(query.select, ofRows.length > 0);
  const isGrouped = ofRows.length > 0 || entries.some(({ isAggregate }) => isAggregate);
  const keys = isGrouped ? entries.flatMap((entry) => entry.keys) : [];
  const members = joined('and', [memberConditions(query, context), ofPoint]);
  const where = joined('and', [members, ...ofEvents.map(({ condition }) => condition)]);
  const shape = selectOf(
    `select 1 from events${keys.length > 0 ? ' group by 1' : ''} offset ${query.offset ?? 0}`,
  );
  const columns = entries.flatMap(({ expressions }) => expressions);
  const select: Select = {
    ...shape,
    columns,
    where,
    groupBy: shape.groupBy && { ...shape.groupBy, items: keys },
    having: joined(
      'and',
      ofRows.map(({ condition }) => condition),
    ),
    orderBy: orderOf(query.orderBy, entries, isGrouped),
  };
  return { entries, select, pieces: piecesOf(select, entries, ofEvents, ofRows, members) };
}

function piecesOf(
  select: Select,
  entries: readonly EventEntry[],
  ofEvents: readonly WrittenCondition[],
  ofRows: readonly WrittenCondition[],
  members: Expression | null,
): EventsStatement['pieces'] {
  const bare: Select = { ...select, where: null, groupBy: null, having: null, orderBy: [] };
  const counted = selectOf('select count() from events');
  return [
    ...entries.map(({ expressions }, index) => ({
      attr: `query__select__${index}`,
      select: { ...bare, columns: expressions.map(withoutName) },
    })),
    ...ofEvents.map(({ condition, attr }) => ({ attr, select: { ...bare, where: condition } })),
    ...ofRows.map(({ condition, attr }) => ({ attr, select: { ...counted, having: condition } })),
    { attr: 'query__properties', select: { ...counted, where: members } },
    { attr: 'query__select', select: { ...select, having: null, orderBy: [] } },
    { attr: 'query__where', select: { ...select, orderBy: [] } },
  ];
}

/** Runs the statement; a refusal names the first piece of it that is refused also by itself. @throws QueryInvalid */
export async function readEvents(
  reader: DialectReader,
  { select, pieces }: EventsStatement,
  options: ReadOptions,
): ReturnType<DialectReader['read']> {
  try {
    reader.compile(select, options);
  } catch (error) {
    if (!(error instanceof QueryInvalid)) throw error;
    for (const { attr, select: piece } of pieces) reader.compile(piece, { ...options, attr });
    reader.compile(select, { ...options, attr: 'query__orderBy' });
    throw error;
  }
  return reader.read(select, options);
}
