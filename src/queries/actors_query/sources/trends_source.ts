import type { DialectReader } from '../../dialect_reader.ts';
import type { QueryContext } from '../../query_kind.ts';
import { trendsActors } from '../../trends_query/actors.ts';
import { selectActorKind } from '../actor_kinds/select_actor_kind.ts';
import type { SourceQuery } from '../actors_source.ts';
import { withSourcePath } from './with_source_path.ts';
import type { InsightActorsQuery } from './schema.ts';
import { trendsPoint } from './trends_point.ts';

/** The actors behind a point of a trend. @throws QueryError */
export async function trendsSource(
  query: InsightActorsQuery,
  reader: DialectReader,
  { project, now }: QueryContext,
): Promise<SourceQuery> {
  const { source } = query;
  const point = trendsPoint(query);
  const select = await withSourcePath(() =>
    trendsActors(source, point, { reader, project, now, attr: 'query__source' }),
  );
  const series = source.series[point.series];
  const kind = selectActorKind(
    series?.math === 'unique_group' ? series.math_group_type_index : null,
    reader,
    `query__source__source__series__${point.series}__math`,
  );
  return { select, kind, placeholders: new Map(), hasDistinctIds: kind.table === 'persons' };
}
