import type { DialectReader } from '../../dialect_reader.ts';
import type { QueryContext } from '../../query_kind.ts';
import { trendsActors } from '../../trends_query/actors.ts';
import { kindOfActors } from '../actor_kinds/kind_of_actors.ts';
import type { SourceQuery } from '../actors_source.ts';
import { inSource } from './in_source.ts';
import type { InsightActorsQuery } from './schema.ts';
import { trendsPoint } from './trends_point.ts';

/** Who is behind a point of trends. @throws QueryInvalid */
export async function trendsSource(
  query: InsightActorsQuery,
  reader: DialectReader,
  { project, now }: QueryContext,
): Promise<SourceQuery> {
  const { source } = query;
  const point = trendsPoint(query);
  const select = await inSource(() =>
    trendsActors(source, point, { reader, project, now, attr: 'query__source' }),
  );
  const series = source.series[point.series];
  const kind = kindOfActors(
    series?.math === 'unique_group' ? series.math_group_type_index : null,
    reader,
    `query__source__source__series__${point.series}__math`,
  );
  return { select, kind, placeholders: new Map(), hasDistinctIds: kind.table === 'persons' };
}
