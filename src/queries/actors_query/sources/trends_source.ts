import type { DialectReader } from '../../dialect_reader.ts';
import { QueryInvalid } from '../../query_errors.ts';
import type { QueryContext } from '../../query_kind.ts';
import { trendsActors } from '../../trends_query/actors.ts';
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
  if (source.series[point.series]?.math === 'unique_group')
    throw new QueryInvalid('not_supported', 'Groups are not stored; only persons can be asked for.', {
      attr: `query__source__source__series__${point.series}__math`,
    });
  const select = await inSource(() =>
    trendsActors(source, point, { reader, project, now, attr: 'query__source' }),
  );
  return { select, placeholders: new Map(), hasDistinctIds: true };
}
