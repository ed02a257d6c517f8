import { actorsQueryKind } from './actors_query/index.ts';
import { dialectQueryKind } from './dialect_query/index.ts';
import { eventsQueryKind } from './events_query/index.ts';
import { funnelsQueryKind } from './funnels_query/index.ts';
import { bindQueryKind, createQueryKinds } from './parse_query.ts';
import { trendsQueryKind } from './trends_query/index.ts';

/** The query kinds of exportd. To add one, create a folder beside this file and add a line here. */
export const builtInQueryKinds = createQueryKinds([
  bindQueryKind(actorsQueryKind),
  bindQueryKind(dialectQueryKind),
  bindQueryKind(eventsQueryKind),
  bindQueryKind(trendsQueryKind),
  bindQueryKind(funnelsQueryKind),
]);
