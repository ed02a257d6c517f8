import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildSelect } from '../../dialect/ast_builders.ts';
import { withSourcePath } from '../actors_query/sources/with_source_path.ts';
import { trendsPoint } from '../actors_query/sources/trends_point.ts';
import type { DialectReader } from '../dialect_reader.ts';
import type { QueryContext } from '../query_kind.ts';
import { trendsPointEvents } from '../trends_query/actors.ts';
import type { EventsQuery } from './schema.ts';

/** The condition that an event is behind a point of a trend; null without a point. @throws QueryError */
export async function pointCondition(
  point: EventsQuery['source'],
  reader: DialectReader,
  { project, now }: Pick<QueryContext, 'project' | 'now'>,
): Promise<Expression | null> {
  if (!point) return null;
  const { from, condition } = await withSourcePath(() =>
    trendsPointEvents(point.source, trendsPoint(point), { reader, project, now, attr: 'query__source' }),
  );
  const among = buildExpression('events.uuid in (select uuid from events)');
  if (among.kind !== 'comparison' || among.right.kind !== 'subquery') throw new Error('Not a subquery.');
  const query = { ...buildSelect('select events.uuid from events'), from, where: condition };
  return { ...among, right: { ...among.right, query } };
}
