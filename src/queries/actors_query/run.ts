import type { Select } from '../../dialect/ast.ts';
import { combineConditions, buildSelect } from '../../dialect/ast_builders.ts';
import type { Relations } from '../../source/relations.ts';
import { withoutName } from '../aggregate_calls.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { filtersCondition, fallibleConditions } from '../filters.ts';
import type { FilterTarget } from '../../filters/operand.ts';
import type { QueryOutput, QueryContext } from '../query_kind.ts';
import { readWithItemErrors, type SelectWithItems } from '../item_errors.ts';
import { personActors } from './actor_kinds/persons.ts';
import { actorsFrom, type ActorsFrom, type SourceQuery } from './actors_source.ts';
import { orderOf } from './order.ts';
import type { ActorsQuery } from './schema.ts';
import { searchCondition } from './search.ts';
import { selectEntries, type SelectEntry } from './select_entries.ts';
import { formatActors } from './format_actors.ts';
import { sourceQuery } from './sources/source_query.ts';

const defaultRows = 100;

/** Lists persons, or the actors behind a result. @throws QueryError */
export async function runActors(
  query: ActorsQuery,
  context: QueryContext,
  relations: Relations,
): Promise<QueryOutput> {
  const reader = await openDialectReader(context, relations);
  const source = query.source ? await sourceQuery(query.source, reader, context) : null;
  const from = actorsFrom(source?.select ?? null, source?.kind ?? personActors);
  const entries = selectEntries(query.select?.length ? query.select : defaultSelect(source, from), from);
  const needsActor = entries.some(({ actorEntry }) => actorEntry !== null);
  const select = selectActors(query, entries, from, needsActor);
  const limit = Math.min(query.limit ?? defaultRows, context.row_limit);
  const options = {
    placeholders: source?.placeholders ?? new Map(),
    rows: { defaultLimit: limit, maxRows: limit },
  };
  const { statement, rows, hasMore } = await readWithItemErrors(reader, select, options);
  const types = statement.columns.map(({ typeName }) => typeName);
  const formatted = needsActor
    ? await formatActors(reader, from.kind, entries, rows)
    : { results: rows, missing_actors_count: null };
  return {
    results: formatted.results,
    columns: entries.map(({ column }) => column),
    types: entries.map(({ actorEntry }, index) => actorEntry?.typeName ?? types[index] ?? ''),
    hasMore,
    limit,
    offset: query.offset ?? 0,
    dialect_query: statement.printed,
    more: { missing_actors_count: formatted.missing_actors_count },
  };
}

const defaultSelect = (source: SourceQuery | null, { kind }: ActorsFrom): readonly string[] => [
  ...kind.defaultSelect,
  ...(source?.hasDistinctIds ? ['event_distinct_ids'] : []),
];

/** Builds the SELECT. If entries show actors, the actor's id is the last column. */
function selectActors(
  { properties, fixedProperties, search, orderBy, offset }: ActorsQuery,
  entries: readonly SelectEntry[],
  from: ActorsFrom,
  needsActor: boolean,
): SelectWithItems {
  const isGrouped = entries.some(({ isAggregate }) => isAggregate);
  const keys = entries.filter(({ isKey }) => isKey).map(({ expression }) => withoutName(expression));
  const groups = needsActor ? [...keys, from.id] : keys;
  const filterTarget = (field: string): FilterTarget => ({
    ...from.kind.filtered(from.id),
    attr: `query__${field}`,
    relation: from.kind.table,
  });
  const shape = buildSelect(
    `select 1 from persons${isGrouped && groups.length > 0 ? ' group by 1' : ''} offset ${offset ?? 0}`,
  );
  const select: Select = {
    ...shape,
    from: from.from,
    columns: [...entries.map(({ expression }) => expression), ...(needsActor ? [from.id] : [])],
    where: combineConditions('and', [
      filtersCondition(properties, filterTarget('properties')),
      filtersCondition(fixedProperties, filterTarget('fixedProperties')),
      searchCondition(search, from),
    ]),
    groupBy: shape.groupBy && { ...shape.groupBy, items: groups },
    orderBy: orderOf(orderBy, entries, from),
  };
  return {
    select,
    entries: entries.map(({ expression, isKey }) => ({
      columns: [expression],
      keys: isKey ? [withoutName(expression)] : [],
    })),
    conditions: [
      ...fallibleConditions(properties, filterTarget('properties')),
      ...fallibleConditions(fixedProperties, filterTarget('fixedProperties')),
    ],
    groupConditions: [],
    ordered: orderBy?.length ?? 0,
  };
}
