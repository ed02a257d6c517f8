import type { Query } from '../../../dialect/ast.ts';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  buildAlias,
  buildSelect,
} from '../../../dialect/ast_builders.ts';
import { parseQuery } from '../../../dialect/parser/parse.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import { withFilterPath } from '../../dialect_query/filter_errors.ts';
import { placeholdersOf, type PlaceholderContext } from '../../dialect_query/placeholders.ts';
import type { DialectQuery } from '../../dialect_query/schema.ts';
import { withFieldPath } from '../../parse_fragments.ts';
import { QueryError } from '../../query_errors.ts';
import { selectActorKind } from '../actor_kinds/select_actor_kind.ts';
import type { SourceQuery } from '../actors_source.ts';

const attr = 'query__source__query';
const idNames = ['group_key', 'actor_id', 'person_id'];

/** Columns with keys of groups, and the index of their type. */
const groupTypeIndexes: ReadonlyMap<string, number> = new Map([
  ['group_key', 0],
  ...[0, 1, 2, 3, 4].map((index) => [`$group_${index}`, index] as const),
]);

/** The actors in the rows of a dialect query. @throws QueryError */
export async function dialectSource(
  source: DialectQuery,
  reader: DialectReader,
  context: PlaceholderContext,
): Promise<SourceQuery> {
  const placeholders = placeholdersOf(source, context, 'query__source');
  const query: Query = withFieldPath(attr, () => parseQuery(source.query));
  const { columns } = await withFilterPath(() => reader.compile(query, { placeholders, attr }), source, {
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
    throw new QueryError('invalid_input', 'Source query must have an id column.', { attr });
  const kind = selectActorKind(groupTypeIndexes.get(id), reader, attr);
  const actor =
    kind.table === 'groups' ? buildExpression('toString({key})', { key: buildField(id) }) : buildField(id);
  const others = [...new Set(names)].filter((name) => name !== 'actor_id' && !kind.fields.has(name));
  return {
    select: {
      ...buildSelect('select 1 from events'),
      columns: [buildAlias(actor, 'actor_id'), ...others.map((name) => buildAlias(buildField(name), name))],
      from: buildDerivedTable(query, 'given'),
    },
    kind,
    placeholders,
    hasDistinctIds: false,
  };
}
