import { relationsOf, type RelationSettings } from '../source/relations.ts';
import { actorsQueryKind } from './actors_query/index.ts';
import { dialectQueryKind } from './dialect_query/index.ts';
import { eventsQueryKind } from './events_query/index.ts';
import { funnelsQueryKind } from './funnels_query/index.ts';
import { bindQueryKind, createQueryKinds, type QueryKinds } from './query_executor.ts';
import { trendsQueryKind } from './trends_query/index.ts';

/**
 * The query kinds of exportd. To add one, create a folder beside this file and add a line here.
 * @throws InvalidRelationName
 */
export const builtInQueryKinds = (settings: RelationSettings): QueryKinds => {
  const relations = relationsOf(settings);
  return createQueryKinds([
    bindQueryKind(actorsQueryKind(relations)),
    bindQueryKind(dialectQueryKind(relations)),
    bindQueryKind(eventsQueryKind(relations)),
    bindQueryKind(trendsQueryKind(relations)),
    bindQueryKind(funnelsQueryKind(relations)),
  ]);
};
