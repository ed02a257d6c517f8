import type { Relations } from '../source/relations.ts';
import { compileRowQuery, type CompiledField } from '../source/row_query/compile_row_query.ts';
import type { ColumnAccess } from '../source/row_query/model_row.ts';
import { createSettingsSql } from '../source/row_query/read_row_query.ts';
import type { RowRange } from '../source/source.ts';
import { readableJson } from '../sql/json_property.ts';
import { date, json, plain, text, time } from './comparable_values.ts';
import type { SourceColumnTypes } from './source_column_types.ts';

/** The query of an export, as fragments of the statements that compare rows. */
export interface QueryColumns {
  /** The comparable columns with their values in SQL. Columns that read the current person are not comparable. */
  readonly columns: ReadonlyMap<string, string>;
  readonly hasKeys: boolean;
  readonly joins: string;
  /** Conditions, each preceded by `and`. */
  readonly condition: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Compiles the query of a range's selection; undefined without a query. @throws DialectError */
export function queryColumns(
  { model, team_id, selection: { query } }: RowRange,
  relations: Relations,
  types: SourceColumnTypes,
  access: ColumnAccess,
): QueryColumns | undefined {
  if (!query) return undefined;
  const { fields, condition, conditionPerson } = compileRowQuery(model, query, team_id, {
    selected: access,
    filtered: access,
    events: { relation: relations.events, columns: types.events ?? new Map<string, string>() },
    persons: { relation: relations.persons, columns: types.persons ?? new Map<string, string>() },
  });
  const { text: rendered, settings } = createSettingsSql();
  const isStable = ({ readsPerson }: CompiledField): boolean => !readsPerson;
  return {
    columns: new Map(
      fields
        .filter(isStable)
        .map((field) => [
          field.name,
          comparable(field, rendered(field.sql), access.jsonType(field.column ?? '')),
        ]),
    ),
    hasKeys: ['_inserted_at', model === 'events' ? 'uuid' : 'distinct_id'].every((name) =>
      fields.some((field) => field.name === name && field.column === name),
    ),
    joins: conditionPerson === null ? '' : personJoin(relations, types, rendered(conditionPerson)),
    condition: condition === null ? '' : ` and ${rendered(condition)}`,
    settings,
  };
}

/** Joins the current person of an event, written without the exporting code. */
function personJoin({ persons }: Relations, types: SourceColumnTypes, alias: string): string {
  const properties =
    types.persons?.get('properties') === 'json' ? readableJson('p.properties') : 'p.properties';
  const createdAt =
    types.persons?.get('created_at') === 'timestamp without time zone'
      ? `p.created_at at time zone 'UTC'`
      : 'p.created_at';
  return ` left join lateral (
    select ${properties} as properties, ${createdAt} as created_at from ${persons} p
    where p.team_id = e.team_id and p.id = e.person_id and not p.is_deleted limit 1) ${alias} on true`;
}

function comparable(
  { type, column }: CompiledField,
  expression: string,
  jsonType: string | undefined,
): string {
  switch (type) {
    case 'text':
      return text(expression);
    case 'json':
      return json(expression, column === null ? 'jsonb' : jsonType);
    case 'timestamp':
      return time(expression);
    case 'date':
      return date(expression);
    default:
      return plain(expression);
  }
}
