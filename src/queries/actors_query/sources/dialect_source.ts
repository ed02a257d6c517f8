import type { Query } from '../../../dialect/ast.ts';
import { derived, fieldOf, named, selectOf } from '../../../dialect/build.ts';
import { parseQuery } from '../../../dialect/parser/parse.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import { namingRefusedFilter } from '../../dialect_query/name_refused_filter.ts';
import { placeholdersOf, type PlaceholderContext } from '../../dialect_query/placeholders.ts';
import type { DialectQuery } from '../../dialect_query/schema.ts';
import { namingMember } from '../../dialect_texts.ts';
import { QueryInvalid } from '../../query_errors.ts';
import { personFields, type SourceQuery } from '../actors_source.ts';

const attr = 'query__source__query';
const idNames = ['group_key', 'actor_id', 'person_id'];

/** Whom the rows of a query of the dialect are about. @throws QueryInvalid */
export async function dialectSource(
  source: DialectQuery,
  reader: DialectReader,
  context: PlaceholderContext,
): Promise<SourceQuery> {
  const placeholders = placeholdersOf(source, context, 'query__source');
  const query: Query = namingMember(attr, () => parseQuery(source.query));
  const { columns } = await namingRefusedFilter(() => reader.compile(query, { placeholders, attr }), source, {
    ...context,
    reader,
    attr: 'query__source',
  });
  const names = columns.map(({ name }) => name);
  const id = names.find((name) => idNames.includes(name)) ?? names.find((name) => name.includes('id'));
  if (id === undefined)
    throw new QueryInvalid('invalid_input', 'Source query must have an id column.', { attr });
  if (id === 'group_key')
    throw new QueryInvalid('not_supported', 'Groups are not stored; select a person_id.', { attr });
  const others = [...new Set(names)].filter((name) => name !== 'actor_id' && !personFields.has(name));
  return {
    select: {
      ...selectOf('select 1 from events'),
      columns: [named(fieldOf(id), 'actor_id'), ...others.map((name) => named(fieldOf(name), name))],
      from: derived(query, 'given'),
    },
    placeholders,
    hasDistinctIds: false,
  };
}
