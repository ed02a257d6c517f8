import type { Query } from '../../../dialect/ast.ts';
import { derived, expressionOf, fieldOf, named, selectOf } from '../../../dialect/build.ts';
import { parseQuery } from '../../../dialect/parser/parse.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import { namingRefusedFilter } from '../../dialect_query/name_refused_filter.ts';
import { placeholdersOf, type PlaceholderContext } from '../../dialect_query/placeholders.ts';
import type { DialectQuery } from '../../dialect_query/schema.ts';
import { namingMember } from '../../dialect_texts.ts';
import { QueryInvalid } from '../../query_errors.ts';
import { kindOfActors } from '../actor_kinds/kind_of_actors.ts';
import type { SourceQuery } from '../actors_source.ts';

const attr = 'query__source__query';
const idNames = ['group_key', 'actor_id', 'person_id'];

/** Columns that hold keys of groups, and the type of those. */
const groupTypeIndexes: ReadonlyMap<string, number> = new Map([
  ['group_key', 0],
  ...[0, 1, 2, 3, 4].map((index) => [`$group_${index}`, index] as const),
]);

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
  const id =
    names.find((name) => idNames.includes(name)) ??
    names.find((name) => groupTypeIndexes.has(name)) ??
    names.find((name) => name.includes('id'));
  if (id === undefined)
    throw new QueryInvalid('invalid_input', 'Source query must have an id column.', { attr });
  const kind = kindOfActors(groupTypeIndexes.get(id), reader, attr);
  const actor = kind.table === 'groups' ? expressionOf('toString({key})', { key: fieldOf(id) }) : fieldOf(id);
  const others = [...new Set(names)].filter((name) => name !== 'actor_id' && !kind.fields.has(name));
  return {
    select: {
      ...selectOf('select 1 from events'),
      columns: [named(actor, 'actor_id'), ...others.map((name) => named(fieldOf(name), name))],
      from: derived(query, 'given'),
    },
    kind,
    placeholders,
    hasDistinctIds: false,
  };
}
