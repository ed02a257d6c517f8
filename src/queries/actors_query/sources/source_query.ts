import type { DialectReader } from '../../dialect_reader.ts';
import type { QueryContext } from '../../query_kind.ts';
import type { SourceQuery } from '../actors_source.ts';
import { dialectSource } from './dialect_source.ts';
import { funnelsSource } from './funnels_source.ts';
import type { ActorsSource } from './schema.ts';
import { trendsSource } from './trends_source.ts';

/** The actors of a source. @throws QueryError */
export async function sourceQuery(
  source: ActorsSource,
  reader: DialectReader,
  context: QueryContext,
): Promise<SourceQuery> {
  switch (source.kind) {
    case 'DialectQuery':
      return dialectSource(source, reader, context);
    case 'InsightActorsQuery':
      return trendsSource(source, reader, context);
    case 'FunnelsActorsQuery':
      return funnelsSource(source, reader, context);
  }
}
