import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, selectOf } from '../../dialect/build.ts';
import { inSource } from '../actors_query/sources/in_source.ts';
import { trendsPoint } from '../actors_query/sources/trends_point.ts';
import type { DialectReader } from '../dialect_reader.ts';
import type { QueryContext } from '../query_kind.ts';
import { trendsPointEvents } from '../trends_query/actors.ts';
import type { EventsQuery } from './schema.ts';

/** That an event is one of those behind a point of trends; null where none is asked about. @throws QueryInvalid */
export async function pointCondition(
  point: EventsQuery['source'],
  reader: DialectReader,
  { project, now }: Pick<QueryContext, 'project' | 'now'>,
): Promise<Expression | null> {
  if (!point) return null;
  const { from, condition } = await inSource(() =>
    trendsPointEvents(point.source, trendsPoint(point), { reader, project, now, attr: 'query__source' }),
  );
  const among = expressionOf('events.uuid in (select uuid from events)');
  if (among.kind !== 'comparison' || among.right.kind !== 'subquery') throw new Error('Not a subquery.');
  const query = { ...selectOf('select events.uuid from events'), from, where: condition };
  return { ...among, right: { ...among.right, query } };
}
