import { earliestFor } from '../../dates/earliest_event.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import { funnelActors } from '../../funnels_query/actors.ts';
import { checkFunnel } from '../../funnels_query/check_funnel.ts';
import { checkExpressions } from '../../funnels_query/check_expressions.ts';
import { planFunnel } from '../../funnels_query/plan.ts';
import type { QueryContext } from '../../query_kind.ts';
import { selectActorKind } from '../actor_kinds/select_actor_kind.ts';
import type { SourceQuery } from '../actors_source.ts';
import { withSourcePath } from './with_source_path.ts';
import type { FunnelsActorsQuery } from './schema.ts';

/** The actors behind a number of a funnel. @throws QueryError */
export async function funnelsSource(
  { source, ...point }: FunnelsActorsQuery,
  reader: DialectReader,
  { project, now }: QueryContext,
): Promise<SourceQuery> {
  const kind = selectActorKind(
    source.aggregation_group_type_index,
    reader,
    'query__source__source__aggregation_group_type_index',
  );
  const earliest = await earliestFor(source.dateRange, reader);
  const select = await withSourcePath(() => {
    checkFunnel(source);
    checkExpressions(planFunnel(source), project, reader);
    return funnelActors(source, point, { project, now, earliest });
  });
  return { select, kind, placeholders: new Map(), hasDistinctIds: false };
}
