import { DialectError, QueryText } from '../../dialect/dialect_error.ts';
import type { Model } from '../../domain/batch_export.ts';
import { compileRowQuery } from './compile_row_query.ts';
import type { ColumnAccess } from './model_row.ts';
import type { RowQuery } from './row_query.ts';
import { createSettingsSql } from './settings_sql.ts';

/** The types do not depend on how columns are accessed. */
const anyAccess: ColumnAccess = { sql: (name) => name, jsonType: () => 'jsonb' };
const anyRelation = { relation: 'any', columns: new Map<string, string>() };

/** Checks the query of an export and determines its columns, without reading the source. @throws DialectError */
export function readRowQuery(
  model: Model,
  given: Pick<RowQuery, 'dialect_query' | 'timezone' | 'week_start_day'>,
): RowQuery {
  const { fields, condition, printed } = compileRowQuery(model, given, 0, {
    selected: anyAccess,
    filtered: anyAccess,
    events: anyRelation,
    persons: anyRelation,
  });
  const { text, settings } = createSettingsSql();
  for (const fragment of [...fields.map((field) => field.sql), ...(condition === null ? [] : [condition])])
    text(fragment);
  if (Object.values(settings).some((value) => value.includes('\0')))
    throw new DialectError(
      new QueryText(given.dialect_query),
      'A string cannot contain the character U+0000.',
      {
        start: 0,
        end: given.dialect_query.length,
      },
    );
  const { dialect_query, timezone, week_start_day } = given;
  return {
    dialect_query,
    timezone,
    week_start_day,
    fields: fields.map(({ name, type, expression }) => ({ name, type, expression })),
    printed,
  };
}
